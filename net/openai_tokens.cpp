// /tokenize and /detokenize.
#include "net/openai_request.hpp"
#include "net/openai_writer.hpp"
#include "runtime/prompt_encoding.hpp"

namespace net {
namespace {

kernels::Error no_tokenizer() { return kernels::invalid("this model has no tokenizer"); }

}  // namespace

kernels::Result<std::string> answer_tokenize(std::string_view body, const actors::Service& service,
                                             const runtime::KeepGoing& keep_going) {
  JsonBody json(body);
  Fields fields = json.fields();
  const actors::ServiceInfo info = service.info();
  const auto tokenizer = service.tokenizer();
  const bool chat = fields.find("messages") != nullptr;
  if (chat == (fields.find("prompt") != nullptr))
    fields.fail(kernels::invalid("give either prompt or messages", "prompt"));
  if (tokenizer == nullptr) fields.fail(no_tokenizer());
  runtime::Prompt prompt;
  if (chat)
    prompt = read_chat_prompt(fields, info);
  else
    prompt = fields.string("prompt").value_or("");
  if (json.error()) return *json.error();
  const auto ids = runtime::encode_prompt(tokenizer.get(), prompt, info.context_length, keep_going);
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
  JsonBody json(body);
  Fields fields = json.fields();
  const actors::ServiceInfo info = service.info();
  const auto tokenizer = service.tokenizer();
  const boost::json::array* tokens = fields.array("tokens");
  if (tokens == nullptr) fields.fail("tokens", "is required");
  const bool skip_special = fields.boolean("skip_special_tokens").value_or(false);
  if (tokenizer == nullptr) fields.fail(no_tokenizer());
  if (json.error()) return *json.error();
  runtime::Detokenizer detokenizer(tokenizer, skip_special);
  std::string text;
  for (size_t i = 0; i < tokens->size() && fields.ok(); ++i) {
    const auto id = read_token_id(fields, "tokens", i, (*tokens)[i]);
    if (id && static_cast<uint32_t>(*id) >= info.vocab_size)
      fields.expected(element("tokens", i),
                      "a token id between 0 and " + std::to_string(int64_t{info.vocab_size} - 1),
                      (*tokens)[i]);
    if (fields.ok()) text += detokenizer.push(*id);
  }
  if (json.error()) return *json.error();
  text += detokenizer.finish();
  std::string quoted;
  append_quoted(quoted, text);
  return "{\"prompt\":" + quoted + ",\"text\":" + quoted + "}";  // two names clients look for
}

}  // namespace net
