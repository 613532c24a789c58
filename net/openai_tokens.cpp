// /tokenize and /detokenize.
#include "net/openai_request.hpp"
#include "net/openai_writer.hpp"
#include "runtime/prompt_encoding.hpp"

namespace net {
namespace json = boost::json;

namespace {

kernels::Error no_tokenizer() { return kernels::invalid("this model has no tokenizer"); }

}  // namespace

kernels::Result<std::string> answer_tokenize(std::string_view body, const actors::Service& service,
                                             const runtime::KeepGoing& keep_going) {
  const auto object = parse_json_object(body);
  if (!object) return object.error();
  const actors::ServiceInfo info = service.info();
  const auto tokenizer = service.tokenizer();
  std::optional<kernels::Error> error;
  Fields fields(*object, "", error);
  const bool chat = fields.find("messages") != nullptr;
  if (chat == (fields.find("prompt") != nullptr))
    return kernels::invalid("give either prompt or messages", "prompt");
  if (tokenizer == nullptr) return no_tokenizer();
  runtime::Prompt prompt;
  if (chat)
    prompt = read_chat_prompt(fields, error, info);
  else
    prompt = fields.string("prompt").value_or("");
  if (error) return *error;
  const auto ids =
      runtime::encode_prompt(tokenizer.get(), prompt, info.context_length, keep_going);
  if (!ids) return ids.error();
  std::string out = "{\"tokens\":[";
  for (size_t i = 0; i < ids->size(); ++i) {
    if (i > 0) out += ',';
    append_integer(out, (*ids)[i]);
  }
  out += "],\"count\":";
  append_integer(out, static_cast<int64_t>(ids->size()));
  out += ",\"max_model_len\":";
  append_integer(out, info.context_length);
  out += '}';
  return out;
}

kernels::Result<std::string> answer_detokenize(std::string_view body,
                                               const actors::Service& service) {
  const auto object = parse_json_object(body);
  if (!object) return object.error();
  const actors::ServiceInfo info = service.info();
  const auto tokenizer = service.tokenizer();
  std::optional<kernels::Error> error;
  Fields fields(*object, "", error);
  const json::array* tokens = fields.array("tokens");
  if (tokens == nullptr) fields.fail("tokens", "is required");
  const bool skip_special = fields.boolean("skip_special_tokens").value_or(false);
  if (error) return *error;
  if (tokenizer == nullptr) return no_tokenizer();
  runtime::Detokenizer detokenizer(tokenizer, skip_special);
  std::string text;
  for (size_t i = 0; i < tokens->size() && !error; ++i) {
    const auto id = read_token_id(fields, "tokens", i, (*tokens)[i]);
    if (id && static_cast<uint32_t>(*id) >= info.vocab_size)
      fields.expected(element("tokens", i),
                      "a token id between 0 and " + std::to_string(int64_t{info.vocab_size} - 1),
                      (*tokens)[i]);
    if (fields.ok()) text += detokenizer.push(*id);
  }
  if (error) return *error;
  text += detokenizer.finish();
  std::string quoted;
  append_quoted(quoted, text);
  return "{\"prompt\":" + quoted + ",\"text\":" + quoted + "}";  // two names clients look for
}

}  // namespace net
