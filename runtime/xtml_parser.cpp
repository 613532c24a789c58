#include "runtime/xtml_parser.hpp"

#include <optional>

#include "runtime/tool_arguments.hpp"
#include "runtime/utf8.hpp"
#include "runtime/xtml_segments.hpp"
#include "runtime/xtml_tag.hpp"

namespace runtime {

namespace {

// A header is text like any other once it is longer than this: names and keys are far shorter, and
// held text delays a stream.
constexpr size_t kHeaderBytesMax = 4096;

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

// Lenient by design: an element that opens ends those it cannot stand in, a close tag without its
// element and an unknown tag are dropped, and text that stands in no element belongs to the
// content.
struct XtmlParser::Impl {
  enum class Channel { kReasoning, kContent, kTools, kCall, kArgument };
  struct Header {
    bool closes = false;
    std::string bytes;
  };

  Impl(std::shared_ptr<const Tokenizer> shared, bool thinking)
      : tokenizer(std::move(shared)),
        open_id(tokenizer->special(xtml::kOpen)),
        close_id(tokenizer->special(xtml::kClose)),
        separator_id(tokenizer->special(xtml::kSeparator)),
        end_id(tokenizer->special(xtml::kEndOfMessage)),
        channel(thinking ? Channel::kReasoning : Channel::kContent) {}

  void push(TokenId id, std::vector<ChatDelta>& out);
  void finish(std::vector<ChatDelta>& out);
  void begin_header(bool closes, std::vector<ChatDelta>& out);
  void end_header(std::vector<ChatDelta>& out);
  void abandon_header(std::vector<ChatDelta>& out);
  void open_element(const XtmlTag& tag, std::vector<ChatDelta>& out);
  void close_element(const XtmlTag& tag, std::vector<ChatDelta>& out);
  void begin_call(const std::string& tool, std::vector<ChatDelta>& out);
  void end_call(std::vector<ChatDelta>& out);
  void end_section(Channel next, std::vector<ChatDelta>& out);
  void push_bytes(std::string_view bytes, std::vector<ChatDelta>& out);
  void flush_bytes(std::vector<ChatDelta>& out);
  void emit(std::string text, std::vector<ChatDelta>& out);
  void emit_arguments(std::string text, std::vector<ChatDelta>& out);
  bool in_call() const { return channel == Channel::kCall || channel == Channel::kArgument; }

  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<TokenId> open_id, close_id, separator_id, end_id;
  Channel channel;
  std::optional<Header> header;  // being read
  Utf8Stream stream;
  ToolArguments arguments;  // of the call that is open
  uint32_t calls = 0;
  bool stray_text = false;  // between the elements of a tools block, since the last tag
};

void XtmlParser::Impl::push(TokenId id, std::vector<ChatDelta>& out) {
  if (id == open_id || id == close_id) {
    begin_header(id == close_id, out);
  } else if (id == separator_id) {
    if (header) end_header(out);
  } else if (id == end_id) {
    finish(out);
  } else if (!tokenizer->is_special(id)) {
    if (!header) {
      push_bytes(tokenizer->bytes(id), out);
    } else {
      header->bytes += tokenizer->bytes(id);
      if (header->bytes.size() > kHeaderBytesMax) abandon_header(out);
    }
  }
}

void XtmlParser::Impl::finish(std::vector<ChatDelta>& out) {
  header.reset();  // cut off: markup, not text
  flush_bytes(out);
  end_section(Channel::kContent, out);
}

void XtmlParser::Impl::begin_header(bool closes, std::vector<ChatDelta>& out) {
  if (header) abandon_header(out);
  flush_bytes(out);
  stray_text = false;
  header = Header{closes, {}};
}

void XtmlParser::Impl::end_header(std::vector<ChatDelta>& out) {
  const XtmlTag tag = parse_xtml_tag(to_valid_utf8(header->bytes));
  const bool closes = header->closes;
  header.reset();
  if (closes) {
    close_element(tag, out);
  } else {
    open_element(tag, out);
  }
}

// No <|sep|> came: what looked like a tag was text after a marker that stood alone.
void XtmlParser::Impl::abandon_header(std::vector<ChatDelta>& out) {
  const std::string bytes = std::move(header->bytes);
  header.reset();
  push_bytes(bytes, out);
}

void XtmlParser::Impl::open_element(const XtmlTag& tag, std::vector<ChatDelta>& out) {
  if (tag.name == "think") {
    end_section(Channel::kReasoning, out);
  } else if (tag.name == "response" || tag.name == "message") {
    end_section(Channel::kContent, out);
  } else if (tag.name == "tools") {
    end_section(Channel::kTools, out);
  } else if (tag.name == "call") {
    const std::string* tool = tag.find("tool");
    if (tool != nullptr && !tool->empty())
      begin_call(*tool, out);  // else nothing a client could run
  } else if (in_call() && (tag.name == "argument" || tag.name == "json")) {
    std::string text;
    if (tag.name == "json") {
      arguments.begin_json(text);
    } else {
      const std::string* key = tag.find("key");
      const std::string* type = tag.find("type");
      arguments.begin_argument(key != nullptr ? *key : "", type != nullptr ? *type : "", text);
    }
    channel = Channel::kArgument;
    emit_arguments(std::move(text), out);
  }
}

void XtmlParser::Impl::close_element(const XtmlTag& tag, std::vector<ChatDelta>& out) {
  if (tag.name == "think") {
    if (channel == Channel::kReasoning) channel = Channel::kContent;
  } else if (tag.name == "argument" || tag.name == "json") {
    if (channel != Channel::kArgument) return;
    std::string text;
    arguments.end_element(text);
    channel = Channel::kCall;
    emit_arguments(std::move(text), out);
  } else if (tag.name == "call") {
    end_call(out);
  } else if (tag.name == "tools") {
    if (channel == Channel::kTools || in_call()) end_section(Channel::kContent, out);
  } else if (tag.name == "message") {
    end_section(Channel::kContent, out);
  }
}

void XtmlParser::Impl::begin_call(const std::string& tool, std::vector<ChatDelta>& out) {
  end_call(out);
  channel = Channel::kCall;
  out.push_back({ChatDelta::Kind::kToolBegin, {}, calls, tool});
  ++calls;
}

void XtmlParser::Impl::end_call(std::vector<ChatDelta>& out) {
  if (!in_call()) return;
  std::string text;
  arguments.finish(text);
  channel = Channel::kTools;
  emit_arguments(std::move(text), out);
}

void XtmlParser::Impl::end_section(Channel next, std::vector<ChatDelta>& out) {
  end_call(out);
  channel = next;
}

void XtmlParser::Impl::push_bytes(std::string_view bytes, std::vector<ChatDelta>& out) {
  std::string text;
  stream.push(bytes, text);
  emit(std::move(text), out);
}

void XtmlParser::Impl::flush_bytes(std::vector<ChatDelta>& out) {
  std::string text;
  stream.flush(text);
  emit(std::move(text), out);
}

void XtmlParser::Impl::emit(std::string text, std::vector<ChatDelta>& out) {
  if (text.empty()) return;
  switch (channel) {
    case Channel::kReasoning:
      out.push_back({ChatDelta::Kind::kReasoning, std::move(text), 0, {}});
      return;
    case Channel::kArgument: {
      std::string json;
      arguments.append(text, json);
      emit_arguments(std::move(json), out);
      return;
    }
    case Channel::kTools:
    case Channel::kCall:
      if (!stray_text && is_blank(text)) return;  // layout between elements is nobody's text
      stray_text = true;
      [[fallthrough]];
    case Channel::kContent:
      out.push_back({ChatDelta::Kind::kContent, std::move(text), 0, {}});
  }
}

void XtmlParser::Impl::emit_arguments(std::string text, std::vector<ChatDelta>& out) {
  if (!text.empty())
    out.push_back({ChatDelta::Kind::kToolArguments, std::move(text), calls - 1, {}});
}

XtmlParser::XtmlParser(std::shared_ptr<const Tokenizer> tokenizer, bool thinking)
    : impl_(std::make_unique<Impl>(std::move(tokenizer), thinking)) {}
XtmlParser::~XtmlParser() = default;

void XtmlParser::push(TokenId id, std::vector<ChatDelta>& out) { impl_->push(id, out); }
void XtmlParser::finish(std::vector<ChatDelta>& out) { impl_->finish(out); }
bool XtmlParser::saw_tool_call() const { return impl_->calls > 0; }

}  // namespace runtime
