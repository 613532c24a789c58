// /v1/chat/completions and /v1/completions: from a body to a request and its answer.
#include "net/openai_request.hpp"

namespace net {
namespace json = boost::json;

namespace {

constexpr uint32_t kCompletionTokens = 16;  // what OpenAI's API generates unless asked otherwise

std::vector<runtime::TokenId> read_ids(Fields& fields, const std::string& name,
                                       const json::array& list) {
  std::vector<runtime::TokenId> ids;
  ids.reserve(list.size());
  for (size_t i = 0; i < list.size() && fields.ok(); ++i)
    if (const auto id = read_token_id(fields, name, i, list[i])) ids.push_back(*id);
  return ids;
}

void read_one_prompt(Fields& fields, const std::string& name, const json::value& value,
                     const actors::ServiceInfo& info, std::vector<runtime::Prompt>& prompts) {
  if (const json::string* text = value.if_string()) {
    if (text->empty()) return fields.fail(name, "must not be empty");
    if (!info.has_tokenizer)
      return fields.fail(name, "must be token ids: this model has no tokenizer");
    prompts.emplace_back(std::string(text->data(), text->size()));
    return;
  }
  const json::array& list = value.get_array();
  if (list.empty()) return fields.fail(name, "must not be an empty array");
  prompts.emplace_back(read_ids(fields, name, list));
}

// prompt: a string, a list of strings, a list of ids, or a list of lists of ids.
std::vector<runtime::Prompt> read_prompts(Fields& fields, const actors::ServiceInfo& info) {
  std::vector<runtime::Prompt> prompts;
  const json::value* prompt = fields.find("prompt");
  if (prompt == nullptr)
    fields.fail("prompt", "is required");
  else if (!prompt->is_string() && !prompt->is_array())
    fields.expected(
        "prompt", "a string, an array of strings, an array of token ids or an array of such arrays",
        *prompt);
  if (prompt == nullptr || !fields.ok()) return prompts;
  const json::array* list = prompt->if_array();
  if (list == nullptr || list->empty() ||
      !(list->front().is_string() || list->front().is_array())) {
    read_one_prompt(fields, "prompt", *prompt, info, prompts);
    return prompts;
  }
  const json::kind kind = list->front().kind();
  for (size_t i = 0; i < list->size() && fields.ok(); ++i) {
    const std::string name = element("prompt", i);
    if ((*list)[i].kind() == kind)
      read_one_prompt(fields, name, (*list)[i], info, prompts);
    else
      fields.expected(
          name,
          kind == json::kind::string ? "a string, like prompt[0]" : "an array, like prompt[0]",
          (*list)[i]);
  }
  return prompts;
}

int32_t read_chat_logprobs(Fields& fields) {
  const bool logprobs = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", {0, 20});
  if (top && !logprobs && *top > 0) fields.fail("top_logprobs", "needs logprobs to be true");
  return logprobs ? static_cast<int32_t>(top.value_or(0)) : -1;
}

void check_completion_extras(Fields& fields, uint32_t n, size_t prompts) {
  if (const auto suffix = fields.string("suffix"); suffix && !suffix->empty())
    fields.fail("suffix", "is not supported");
  if (const auto best_of = fields.integer("best_of", {1, kChoicesPerPromptMax});
      best_of && *best_of != int64_t{n})
    fields.fail("best_of",
                "must equal n (" + std::to_string(n) + "), got " + std::to_string(*best_of));
  if (prompts * n > actors::kChoicesMax)
    fields.fail("prompt", "asks for " + std::to_string(prompts * n) +
                              " choices in one request (prompts times n); at most " +
                              std::to_string(actors::kChoicesMax) + " are served");
}

// The request's id, unless the client chose one: `prefix` and random digits. Its answer's head.
AnswerHead finish_request(const CommonFields& common, const actors::ServiceInfo& info,
                          const char* prefix, ParsedRequest& parsed) {
  std::string& rid = parsed.generate.rid;
  if (rid.empty()) rid = std::string(prefix) + random_hex(4);
  parsed.stream = common.stream;
  AnswerHead head = make_head(info, rid);
  head.model = common.model;
  head.include_usage = common.include_usage;
  return head;
}

}  // namespace

kernels::Result<ParsedRequest> parse_chat_request(std::string_view body,
                                                  const actors::Service& service) {
  JsonBody json(body);
  Fields fields = json.fields();
  const actors::ServiceInfo info = service.info();
  ParsedRequest parsed;
  runtime::GenerateRequest& generate = parsed.generate;
  const CommonFields common = read_common(fields, info, {1, 0}, generate);
  generate.sampling.top_logprobs = read_chat_logprobs(fields);
  generate.prompts.emplace_back(read_chat_prompt(fields, info));
  generate.parse_chat = true;
  if (!info.has_tokenizer)
    fields.fail("messages",
                "need a tokenizer, and this model has none; /v1/completions takes token ids");
  if (json.error()) return *json.error();
  ChatAnswerOptions options;
  options.head = finish_request(common, info, "chatcmpl-", parsed);
  options.choices = generate.n;
  options.logprobs = generate.sampling.top_logprobs >= 0;
  options.call_key = random_hex(4);
  options.tokenizer = service.tokenizer();
  parsed.answer = make_chat_answer(std::move(options));
  return parsed;
}

kernels::Result<ParsedRequest> parse_completion_request(std::string_view body,
                                                        const actors::Service& service) {
  JsonBody json(body);
  Fields fields = json.fields();
  const actors::ServiceInfo info = service.info();
  ParsedRequest parsed;
  runtime::GenerateRequest& generate = parsed.generate;
  const CommonFields common = read_common(fields, info, {0, kCompletionTokens}, generate);
  generate.sampling.top_logprobs =
      static_cast<int32_t>(fields.integer("logprobs", {0, 20}).value_or(-1));
  generate.prompts = read_prompts(fields, info);
  check_completion_extras(fields, generate.n, generate.prompts.size());
  CompletionAnswerOptions options;
  options.echo = fields.boolean("echo").value_or(false);
  options.logprobs = generate.sampling.top_logprobs >= 0;
  options.return_token_ids = fields.boolean("return_token_ids").value_or(false);
  options.tokens_as_ids = fields.boolean("return_tokens_as_token_ids").value_or(false);
  if (json.error()) return *json.error();
  generate.prompt_logprobs = options.echo && options.logprobs;
  options.head = finish_request(common, info, "cmpl-", parsed);
  options.prompts = static_cast<uint32_t>(generate.prompts.size());
  options.n = generate.n;
  options.skip_special_tokens = generate.skip_special_tokens;
  options.tokenizer = service.tokenizer();
  parsed.answer = make_completion_answer(std::move(options));
  return parsed;
}

}  // namespace net
