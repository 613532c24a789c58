// Conversations as OpenAI chat messages, one a line: {"session", "messages", "tools"?}. Each
// assistant message is the answer to a request of all messages before it. What prompts share is
// found with the template and tokenizer of a model, as its server would read them.
#include "net/openai_request.hpp"
#include "net/trace/block_hash.hpp"
#include "net/trace/prefix_trie.hpp"
#include "net/trace/trace_formats.hpp"
#include "runtime/tokenizer.hpp"
#include "runtime/xtml_template.hpp"

namespace net {
namespace {

using runtime::ChatPrompt;
using Ids = std::vector<runtime::TokenId>;

// Token ids of a conversation's prompts, one after the other. What one prompt ends with, the tags
// that open an answer, is not what the next goes on from; all before it is, and is encoded once.
class ConversationEncoder {
 public:
  ConversationEncoder(const runtime::Tokenizer& tokenizer, const ChatPrompt& chat)
      : tokenizer_(tokenizer), so_far_(chat) {
    so_far_.messages.clear();
  }

  // The prompt that ends with the conversation's message before `end`.
  kernels::Result<Ids> prompt(const ChatPrompt& chat, size_t end);
  kernels::Result<Ids> answer(const runtime::ChatMessage& message) const {
    const auto segments = runtime::render_answer(message, so_far_.thinking);
    if (!segments) return segments.error();
    return runtime::encode_segments(tokenizer_, *segments);
  }

 private:
  const runtime::Tokenizer& tokenizer_;
  ChatPrompt so_far_;
  size_t encoded_ = 0;  // segments
  Ids ids_;             // of those
};

kernels::Result<Ids> ConversationEncoder::prompt(const ChatPrompt& chat, size_t end) {
  for (size_t i = so_far_.messages.size(); i < end; ++i)
    so_far_.messages.push_back(chat.messages[i]);
  auto segments = runtime::render_xtml(so_far_);
  if (!segments) return segments.error();
  ChatPrompt empty;
  empty.thinking = so_far_.thinking;
  empty.effort.clear();
  const size_t opened = runtime::render_xtml(empty).value().size();  // the tags of an answer
  const auto begin = segments->begin() + static_cast<std::ptrdiff_t>(encoded_);
  const auto tags = segments->end() - static_cast<std::ptrdiff_t>(opened);
  const auto fresh = runtime::encode_segments(tokenizer_, {begin, tags});
  if (!fresh) return fresh.error();
  ids_.insert(ids_.end(), fresh->begin(), fresh->end());
  encoded_ = segments->size() - opened;
  const auto open = runtime::encode_segments(tokenizer_, {tags, segments->end()});
  if (!open) return open.error();
  Ids prompt = ids_;
  prompt.insert(prompt.end(), open->begin(), open->end());
  return prompt;
}

class MessagesReader {
 public:
  MessagesReader(const runtime::Tokenizer& tokenizer, Trace& trace)
      : tokenizer_(tokenizer), trace_(trace) {}
  void read_row(Fields fields, size_t line);

 private:
  kernels::Result<void> add_requests(const ChatPrompt& chat);
  void add_request(const Ids& prompt, Ids answer, uint32_t messages);

  const runtime::Tokenizer& tokenizer_;
  Trace& trace_;
  const memory::PrefixHash root_ = memory::root_prefix(0);
  PrefixTrie prompts_, answered_;  // prompts alone, and followed by their answers
};

void MessagesReader::read_row(Fields fields, size_t line) {
  ChatPrompt chat;
  const std::string name = fields.string("session").value_or("line " + std::to_string(line));
  chat.messages = read_messages(fields);
  chat.tools = read_tools(fields);
  if (!fields.ok()) return;
  trace_.sessions.push_back({name, 0, 0});
  trace_.texts.emplace_back();
  if (const auto added = add_requests(chat); !added) return fields.fail(added.error());
  if (trace_.sessions.back().requests == 0)
    return fields.fail("messages", "holds no assistant message; expected at least one answer");
  trace_.texts.back().prompt = std::move(chat);
}

kernels::Result<void> MessagesReader::add_requests(const ChatPrompt& chat) {
  ConversationEncoder encoder(tokenizer_, chat);
  for (size_t i = 0; i < chat.messages.size(); ++i) {
    if (chat.messages[i].role != "assistant") continue;
    const auto prompt = encoder.prompt(chat, i);
    if (!prompt) return prompt.error();
    auto answer = encoder.answer(chat.messages[i]);
    if (!answer) return answer.error();
    add_request(*prompt, std::move(*answer), static_cast<uint32_t>(i));
  }
  return {};
}

void MessagesReader::add_request(const Ids& prompt, Ids answer, uint32_t messages) {
  const auto index = static_cast<uint32_t>(trace_.requests.size());
  TraceSession& session = trace_.sessions.back();
  TraceRequest request;
  request.session = static_cast<uint32_t>(trace_.sessions.size() - 1);
  if (session.requests++ > 0) request.after = index - 1;
  request.text = static_cast<uint32_t>(trace_.texts.size() - 1);
  request.messages = messages;
  request.input_tokens = static_cast<uint32_t>(prompt.size());
  request.output_tokens = static_cast<uint32_t>(answer.size());
  const auto blocks = block_hashes(prompt, trace_.block_tokens, root_);
  const SharedPrefix shared = prompts_.insert(blocks, index);
  request.blocks = static_cast<uint32_t>(blocks.size());
  request.shared_blocks = shared.blocks;
  request.shared_with = shared.with;
  request.shared_blocks_with_answers = answered_.find(blocks).blocks;
  Ids both = prompt;
  both.insert(both.end(), answer.begin(), answer.end());
  answered_.insert(block_hashes(both, trace_.block_tokens, root_), index);
  request.answer = std::move(answer);
  trace_.requests.push_back(std::move(request));
}

}  // namespace

Trace read_messages(const std::vector<TraceFile>& files, const TraceOptions& options) {
  const auto tokenizer = options.model.empty() ? nullptr : runtime::Tokenizer::load(options.model);
  if (tokenizer == nullptr)
    throw std::runtime_error(files.front().path + " holds messages: " +
                             (options.model.empty()
                                  ? "name the model whose tokenizer reads them"
                                  : options.model + " has no tiktoken.model; name another model") +
                             " (--model DIR)");
  Trace trace;
  trace.format = TraceFormat::kMessages;
  trace.block_tokens = options.block_tokens != 0 ? options.block_tokens : kMessageBlockTokens;
  trace.has_prefixes = true;
  trace.clock = TraceClock::kOwn;
  MessagesReader reader(*tokenizer, trace);
  for (const TraceFile& file : files) {
    for_each_json_row(
        file, [&](Fields fields, size_t line) { reader.read_row(std::move(fields), line); });
  }
  return trace;
}

}  // namespace net
