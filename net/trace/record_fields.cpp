// Lines as records.
#include "net/openai_request.hpp"
#include "net/trace/request_record.hpp"

namespace net {
namespace json = boost::json;

namespace {

constexpr int64_t kHashMax = (int64_t{1} << 53) - 1;
constexpr IntegerRange kTokens{0, 1 << 30};
constexpr NumberRange kTimes{0, 1e9};

const json::value* required(Fields& fields, std::string_view name) {
  const json::value* value = fields.find(name);
  if (value == nullptr) fields.fail(name, "is required");
  return value;
}

uint32_t count(Fields& fields, std::string_view name, IntegerRange range = kTokens) {
  required(fields, name);
  return static_cast<uint32_t>(fields.integer(name, range).value_or(0));
}

double seconds(Fields& fields, std::string_view name) {
  required(fields, name);
  return fields.number(name, kTimes).value_or(0);
}

template <class Number>
std::vector<Number> numbers(Fields& fields, std::string_view name, IntegerRange range) {
  std::vector<Number> list;
  const json::array* array = fields.array(name);
  for (size_t i = 0; array != nullptr && i < array->size(); ++i) {
    const auto value = exact_integer((*array)[i]);
    if (!value || *value < range.low || *value > range.high) {
      fields.expected(
          element(name, i),
          "an integer between " + std::to_string(range.low) + " and " + std::to_string(range.high),
          (*array)[i]);
      break;
    }
    list.push_back(static_cast<Number>(*value));
  }
  return list;
}

// read(Fields of the element) for each object of a list.
template <class Read>
void for_each(Fields& fields, std::string_view name, Read read) {
  required(fields, name);
  const json::array* array = fields.array(name);
  for (size_t i = 0; array != nullptr && i < array->size() && fields.ok(); ++i) {
    const std::string item = element(name, i);
    if (const json::object* object = (*array)[i].if_object())
      read(fields.inside(item, *object));
    else
      fields.expected(item, "an object", (*array)[i]);
  }
}

std::optional<runtime::Prompt> read_content(Fields& fields) {
  if (const json::object* chat = fields.object("chat")) {
    Fields inner = fields.inside("chat", *chat);
    return read_chat_prompt(inner, actors::ServiceInfo{});
  }
  if (fields.find("ids") != nullptr)
    return numbers<runtime::TokenId>(fields, "ids", {0, INT32_MAX});
  if (auto text = fields.string("text")) return std::move(*text);
  return std::nullopt;
}

RecordedPrompt read_prompt(Fields fields) {
  RecordedPrompt prompt;
  prompt.tokens = count(fields, "tokens");
  required(fields, "blocks");
  prompt.blocks = numbers<uint64_t>(fields, "blocks", {0, kHashMax});
  prompt.messages = numbers<uint64_t>(fields, "messages", {0, kHashMax});
  prompt.content = read_content(fields);
  return prompt;
}

RecordedChoice read_choice(Fields fields, size_t prompts) {
  RecordedChoice choice;
  if (prompts == 0) fields.fail("prompt", "names none of the request's prompts");
  choice.prompt = count(fields, "prompt", {0, static_cast<int64_t>(prompts) - 1});
  choice.tokens = count(fields, "tokens");
  choice.finish =
      fields.word("finish", {"stop", "length", "tool_calls", "abort", "error"}).value_or("error");
  choice.blocks = numbers<uint64_t>(fields, "blocks", {0, kHashMax});
  choice.ids = numbers<runtime::TokenId>(fields, "ids", {0, INT32_MAX});
  return choice;
}

}  // namespace

RecordHeader read_record_header(Fields fields) {
  RecordHeader header;
  required(fields, "sluice_record");
  fields.integer("sluice_record", {kRecordVersion, kRecordVersion});
  header.model = fields.string("model").value_or("");
  header.block_tokens = count(fields, "block_tokens", {1, 1 << 20});
  header.started_unix_s = fields.number("started_unix_s", {0, 1e11}).value_or(0);
  header.hashed = fields.word("prompts", {"content", "hashed"}) == "hashed";
  return header;
}

RequestRecord read_request_record(Fields fields) {
  RequestRecord record;
  record.arrival_s = seconds(fields, "arrival_s");
  record.first_token_s = seconds(fields, "first_token_s");
  record.end_s = seconds(fields, "end_s");
  if (fields.ok() && record.end_s < record.arrival_s)
    fields.expected("end_s", "no less than arrival_s", *fields.find("end_s"));
  record.endpoint = fields.word("endpoint", {"chat", "completion"}).value_or("");
  record.id = fields.string("id").value_or("");
  record.session = fields.string("session").value_or("");
  record.cached_tokens =
      static_cast<uint32_t>(fields.integer("cached_tokens", kTokens).value_or(0));
  for_each(fields, "prompts",
           [&](Fields inner) { record.prompts.push_back(read_prompt(std::move(inner))); });
  for_each(fields, "choices", [&](Fields inner) {
    record.choices.push_back(read_choice(std::move(inner), record.prompts.size()));
  });
  return record;
}

}  // namespace net
