#include "net/replay/answer_event.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <limits>

namespace net {

namespace json = boost::json;

namespace {

const json::value* found(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

const json::object* object_in(const json::object& object, std::string_view key) {
  const json::value* value = found(object, key);
  return value == nullptr ? nullptr : value->if_object();
}

uint32_t count_in(const json::object& object, std::string_view key) {
  const json::value* value = found(object, key);
  json::error_code failed;
  const double count =
      value == nullptr || !value->is_number() ? 0 : value->to_number<double>(failed);
  constexpr double kMost = std::numeric_limits<uint32_t>::max();
  return failed || !(count >= 0 && count <= kMost) ? 0 : static_cast<uint32_t>(count);
}

bool has_text(const json::object& object, std::string_view key) {
  const json::value* value = found(object, key);
  return value != nullptr && value->is_string() && !value->get_string().empty();
}

// A chunk of completions without text still brings a token, one that ends within a character. One
// of chat without any may only name the speaker.
bool brings_token(const json::object& choice, bool finished) {
  const json::object* delta = object_in(choice, "delta");
  if (delta == nullptr) return has_text(choice, "text") || (!finished && choice.contains("text"));
  const json::value* calls = found(*delta, "tool_calls");
  return has_text(*delta, "content") || has_text(*delta, "reasoning_content") ||
         has_text(*delta, "reasoning") || has_text(*delta, "refusal") ||
         (calls != nullptr && calls->is_array() && !calls->get_array().empty());
}

std::string message_of(const json::value& error) {
  const json::object* object = error.if_object();
  const json::value* message = object == nullptr ? &error : found(*object, "message");
  if (message != nullptr && message->is_string()) return std::string(message->get_string().c_str());
  return json::serialize(error);
}

}  // namespace

AnswerEvent read_answer_event(std::string_view data) {
  AnswerEvent event;
  if (data == "[DONE]") {
    event.done = true;
    return event;
  }
  json::error_code failed;
  const json::value value = json::parse({data.data(), data.size()}, failed);
  const json::object* const object = failed ? nullptr : value.if_object();
  if (object == nullptr) {
    event.error = "an event is no JSON object";
    return event;
  }
  if (const json::value* error = found(*object, "error")) {
    event.error = message_of(*error);
    return event;
  }
  if (const json::object* usage = object_in(*object, "usage")) {
    event.usage =
        TokenUsage{count_in(*usage, "prompt_tokens"), count_in(*usage, "completion_tokens"), 0};
    if (const json::object* details = object_in(*usage, "prompt_tokens_details"))
      event.usage->cached_tokens = count_in(*details, "cached_tokens");
  }
  const json::value* choices = found(*object, "choices");
  if (choices == nullptr || !choices->is_array() || choices->get_array().empty()) return event;
  const json::object* choice = choices->get_array().front().if_object();
  if (choice == nullptr) return event;
  event.finished = found(*choice, "finish_reason") != nullptr;
  event.token = brings_token(*choice, event.finished);
  return event;
}

}  // namespace net
