// Malformed bodies, each with the exact message and the field it blames.
#include <catch2/catch.hpp>

#include "net/openai_api.hpp"
#include "tests/support/fake_service.hpp"
#include "tests/support/tokenizer_directory.hpp"

namespace {

struct Malformed {
  std::string fields;  // what is added to an otherwise good request
  std::string param, message;
};

std::string chat(const std::string& fields) {
  return R"({"messages":[{"role":"user","content":"hi"}],)" + fields + "}";
}
std::string completion(const std::string& fields) { return R"({"prompt":"hi",)" + fields + "}"; }

template <class T>
void check_refused(const kernels::Result<T>& result, const Malformed& bad,
                   kernels::ErrorCode code = kernels::ErrorCode::kInvalid) {
  CAPTURE(bad.fields);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().message == bad.message);
  CHECK(result.error().param == bad.param);
  CHECK(result.error().code == code);
}

const std::vector<Malformed> kSampling = {
    {R"("temperature":"hot")", "temperature",
     R"(temperature must be a number between 0 and 2, got "hot")"},
    {R"("temperature":-0.1)", "temperature",
     "temperature must be a number between 0 and 2, got -0.1"},
    {R"("temperature":2.5)", "temperature",
     "temperature must be a number between 0 and 2, got 2.5"},
    {R"("temperature":1e999)", "temperature",
     "temperature must be a number between 0 and 2, got inf"},
    {R"("temperature":true)", "temperature",
     "temperature must be a number between 0 and 2, got true"},
    {R"("top_p":0)", "top_p", "top_p must be a number above 0 and at most 1, got 0"},
    {R"("top_p":1.01)", "top_p", "top_p must be a number above 0 and at most 1, got 1.01"},
    {R"("top_k":-2)", "top_k", "top_k must be an integer between -1 and 2147483647, got -2"},
    {R"("top_k":1.5)", "top_k", "top_k must be an integer between -1 and 2147483647, got 1.5"},
    {R"("min_p":[])", "min_p", "min_p must be a number between 0 and 1, got an empty array"},
    {R"("repetition_penalty":0)", "repetition_penalty",
     "repetition_penalty must be a number between 0.01 and 2, got 0"},
    {R"("presence_penalty":-3)", "presence_penalty",
     "presence_penalty must be a number between -2 and 2, got -3"},
    {R"("frequency_penalty":{"a":1})", "frequency_penalty",
     "frequency_penalty must be a number between -2 and 2, got an object"},
    {R"("logit_bias":[1])", "logit_bias", "logit_bias must be an object, got an array"},
    {R"("logit_bias":{"x":1})", "logit_bias",
     R"(logit_bias must have token ids as its keys, got "x")"},
    {R"("logit_bias":{"-1":1})", "logit_bias",
     R"(logit_bias must have token ids as its keys, got "-1")"},
    {R"("logit_bias":{"99999999999":1})", "logit_bias",
     R"(logit_bias must have token ids as its keys, got "99999999999")"},
    {R"("logit_bias":{"5":101})", "logit_bias",
     "logit_bias must map ids to numbers between -100 and 100, got 101 for id 5"},
    {R"("logit_bias":{"5":"a"})", "logit_bias",
     R"(logit_bias must map ids to numbers between -100 and 100, got "a" for id 5)"},
    {R"("seed":"7")", "seed", R"(seed must be a 64-bit integer, got "7")"},
    {R"("seed":1.5)", "seed", "seed must be a 64-bit integer, got 1.5"},
    {R"("n":0)", "n", "n must be an integer between 1 and 128, got 0"},
    {R"("n":129)", "n", "n must be an integer between 1 and 128, got 129"},
    {R"("n":"2")", "n", R"(n must be an integer between 1 and 128, got "2")"},
    {R"("stop":"")", "stop", "stop must not be an empty string"},
    {R"("stop":5)", "stop", "stop must be a string or an array of strings, got 5"},
    {R"("stop":["a",""])", "stop[1]", "stop[1] must not be an empty string"},
    {R"("stop":["a",3])", "stop[1]", "stop[1] must be a string, got 3"},
    {R"("stop":["a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a"])", "stop",
     "stop must hold at most 16 strings, got 17"},
    {R"("stop_token_ids":7)", "stop_token_ids", "stop_token_ids must be an array, got 7"},
    {R"("stop_token_ids":[1,0.5])", "stop_token_ids[1]",
     "stop_token_ids[1] must be a token id, got 0.5"},
    {R"("min_tokens":5,"max_tokens":4)", "min_tokens",
     "min_tokens must be at most max_tokens (4), got 5"},
    {R"("min_tokens":-1)", "min_tokens",
     "min_tokens must be an integer between 0 and 1073741824, got -1"},
    {R"("ignore_eos":1)", "ignore_eos", "ignore_eos must be true or false, got 1"},
    {R"("skip_special_tokens":"no")", "skip_special_tokens",
     R"(skip_special_tokens must be true or false, got "no")"},
    {R"("include_stop_str_in_output":0)", "include_stop_str_in_output",
     "include_stop_str_in_output must be true or false, got 0"},
    {R"("priority":3000000000)", "priority",
     "priority must be an integer between -2147483648 and 2147483647, got 3000000000"},
    {R"("deadline_ms":0)", "deadline_ms",
     "deadline_ms must be an integer between 1 and 604800000, got 0"},
    {R"("cache_salt":4)", "cache_salt", "cache_salt must be a string, got 4"},
    {R"("prompt_cache_key":[])", "prompt_cache_key",
     "prompt_cache_key must be a string, got an empty array"},
    {R"("rid":"")", "rid", "rid must be 1 to 128 bytes long, got 0"},
    {R"("request_id":[1])", "request_id", "request_id must be a string, got an array"},
    {R"("model":5)", "model", "model must be a string, got 5"},
    {R"("stream":"yes")", "stream", R"(stream must be true or false, got "yes")"},
    {R"("stream_options":{"include_usage":true})", "stream_options",
     "stream_options is only allowed when stream is true"},
    {R"("stream":true,"stream_options":7)", "stream_options",
     "stream_options must be an object, got 7"},
    {R"("stream":true,"stream_options":{"include_usage":1})", "stream_options.include_usage",
     "stream_options.include_usage must be true or false, got 1"},
};

const std::vector<Malformed> kChat = {
    {R"("max_tokens":0)", "max_tokens",
     "max_tokens must be an integer between 1 and 1073741824, got 0"},
    {R"("max_completion_tokens":"9")", "max_completion_tokens",
     R"(max_completion_tokens must be an integer between 1 and 1073741824, got "9")"},
    {R"("logprobs":3)", "logprobs", "logprobs must be true or false, got 3"},
    {R"("top_logprobs":2)", "top_logprobs", "top_logprobs needs logprobs to be true"},
    {R"("logprobs":true,"top_logprobs":21)", "top_logprobs",
     "top_logprobs must be an integer between 0 and 20, got 21"},
    {R"("messages":[])", "messages", "messages must be a non-empty array, got an empty array"},
    {R"("messages":"hi")", "messages", R"(messages must be a non-empty array, got "hi")"},
    {R"("messages":["hi"])", "messages[0]", R"(messages[0] must be an object, got "hi")"},
    {R"("messages":[{"content":"hi"}])", "messages[0].role", "messages[0].role is required"},
    {R"("messages":[{"role":"bot","content":"hi"}])", "messages[0].role",
     R"(messages[0].role must be one of system, developer, user, assistant, tool, got "bot")"},
    {R"("messages":[{"role":"user"}])", "messages[0].content", "messages[0].content is required"},
    {R"("messages":[{"role":"user","content":7}])", "messages[0].content",
     "messages[0].content must be a string or an array of parts, got 7"},
    {R"("messages":[{"role":"user","content":["x"]}])", "messages[0].content[0]",
     R"(messages[0].content[0] must be an object, got "x")"},
    {R"("messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u"}}]}])",
     "messages[0].content[1]", "messages[0].content[1] is an image; images are not supported yet"},
    {R"("messages":[{"role":"user","content":[{"type":"input_audio"}]}])",
     "messages[0].content[0].type",
     R"(messages[0].content[0].type must be one of text, refusal, got "input_audio")"},
    {R"("messages":[{"role":"user","content":[{"text":"a"}]}])", "messages[0].content[0].type",
     "messages[0].content[0].type is required"},
    {R"("messages":[{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text",
     "messages[0].content[0].text is required"},
    {R"("messages":[{"role":"user","content":"a","name":3}])", "messages[0].name",
     "messages[0].name must be a string, got 3"},
    {R"("messages":[{"role":"assistant","content":"a","reasoning_content":3}])",
     "messages[0].reasoning_content", "messages[0].reasoning_content must be a string, got 3"},
    {R"("messages":[{"role":"assistant","tool_calls":{}}])", "messages[0].tool_calls",
     "messages[0].tool_calls must be an array, got an object"},
    {R"("messages":[{"role":"assistant","tool_calls":[{"type":"custom"}]}])",
     "messages[0].tool_calls[0].type",
     R"(messages[0].tool_calls[0].type must be "function", got "custom")"},
    {R"("messages":[{"role":"assistant","tool_calls":[{"type":"function"}]}])",
     "messages[0].tool_calls[0].function", "messages[0].tool_calls[0].function is required"},
    {R"("messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]}])",
     "messages[0].tool_calls[0].function.arguments",
     "messages[0].tool_calls[0].function.arguments must be a string, got an object"},
    {R"("messages":[{"role":"tool","content":"a"}])", "messages[0].tool_call_id",
     "messages[0].tool_call_id is required in a message of role tool"},
    {R"("tools":{})", "tools", "tools must be an array, got an object"},
    {R"("tools":["f"])", "tools[0]", R"(tools[0] must be an object, got "f")"},
    {R"("tools":[{}])", "tools[0].type", "tools[0].type is required"},
    {R"("tools":[{"type":"function"}])", "tools[0].function", "tools[0].function is required"},
    {R"("tools":[{"type":"function","function":{}}])", "tools[0].function.name",
     "tools[0].function.name is required"},
    {R"("tools":[{"type":"function","function":{"name":""}}])", "tools[0].function.name",
     "tools[0].function.name must be 1 to 128 bytes long, got 0"},
    {R"("tools":[{"type":"function","function":{"name":"f","parameters":[]}}])",
     "tools[0].function.parameters",
     "tools[0].function.parameters must be an object, got an empty array"},
    {R"("tool_choice":"required")", "tool_choice",
     R"(tool_choice is "required", but tools lists no function)"},
    {R"("tool_choice":"any")", "tool_choice",
     R"(tool_choice must be auto, none, required or {"type": "function", "function": {"name": ...}}, got "any")"},
    {R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"g"}})",
     "tool_choice.function.name",
     R"(tool_choice.function.name must be the name of a function in tools, got "g")"},
    {R"("tool_choice":{"type":"function"})", "tool_choice.function",
     "tool_choice.function is required"},
    {R"("functions":[{"name":"f"}])", "functions",
     "functions is not supported; use tools and tool_choice"},
    {R"("response_format":"json")", "response_format",
     R"(response_format must be an object, got "json")"},
    {R"("response_format":{"type":"xml"})", "response_format.type",
     R"(response_format.type must be one of text, json_object, json_schema, got "xml")"},
    {R"("response_format":{"type":"json_schema"})", "response_format.json_schema",
     "response_format.json_schema is required"},
    {R"("response_format":{"type":"json_schema","json_schema":{"name":"a"}})",
     "response_format.json_schema.schema", "response_format.json_schema.schema is required"},
    {R"("reasoning_effort":"minimal")", "reasoning_effort",
     R"(reasoning_effort must be one of low, medium, high, max, none, got "minimal")"},
    {R"("reasoning_effort":"xhigh")", "reasoning_effort",
     R"(reasoning_effort must be one of low, medium, high, max, none, got "xhigh")"},
    {R"("chat_template_kwargs":{"thinking":"off"})", "chat_template_kwargs.thinking",
     R"(chat_template_kwargs.thinking must be true or false, got "off")"},
};

const std::vector<Malformed> kCompletion = {
    {R"("prompt":"")", "prompt", "prompt must not be empty"},
    {R"("prompt":[])", "prompt", "prompt must not be an empty array"},
    {R"("prompt":[[]])", "prompt[0]", "prompt[0] must not be an empty array"},
    {R"("prompt":["a",""])", "prompt[1]", "prompt[1] must not be empty"},
    {R"("prompt":["a",5])", "prompt[1]", "prompt[1] must be a string, like prompt[0], got 5"},
    {R"("prompt":[[1],"a"])", "prompt[1]",
     R"(prompt[1] must be an array, like prompt[0], got "a")"},
    {R"("prompt":[1,"a"])", "prompt[1]", R"(prompt[1] must be a token id, got "a")"},
    {R"("prompt":[1,2147483648])", "prompt[1]", "prompt[1] must be a token id, got 2147483648"},
    {R"("prompt":[[1],[2,-1]])", "prompt[1][1]", "prompt[1][1] must be a token id, got -1"},
    {R"("prompt":5)", "prompt",
     "prompt must be a string, an array of strings, an array of token ids or an array of such "
     "arrays, got 5"},
    {R"("max_tokens":-1)", "max_tokens",
     "max_tokens must be an integer between 0 and 1073741824, got -1"},
    {R"("logprobs":21)", "logprobs", "logprobs must be an integer between 0 and 20, got 21"},
    {R"("logprobs":true)", "logprobs", "logprobs must be an integer between 0 and 20, got true"},
    {R"("echo":"yes")", "echo", R"(echo must be true or false, got "yes")"},
    {R"("suffix":"end")", "suffix", "suffix is not supported"},
    {R"("best_of":3)", "best_of", "best_of must equal n (1), got 3"},
    {R"("return_token_ids":2)", "return_token_ids",
     "return_token_ids must be true or false, got 2"},
    {R"("min_tokens":17)", "min_tokens", "min_tokens must be at most max_tokens (16), got 17"},
    {R"("n":128,"prompt":["a","a","a","a","a","a","a","a","a"])", "prompt",
     "prompt asks for 1152 choices in one request (prompts times n); at most 1024 are served"},
};

// Whole bodies; the same for every endpoint.
const std::vector<Malformed> kBodies = {
    {"", "", "the body is empty; a JSON object is expected"},
    {"[1]", "", "the body must be a JSON object, got an array"},
    {"7", "", "the body must be a JSON object, got 7"},
    {R"({"prompt":"a")", "", "the body is not valid JSON: it ends too early at byte 13"},
    {R"({"prompt":})", "", "the body is not valid JSON: syntax error at byte 10"},
    {R"({"prompt":"a"} x)", "",
     "the body is not valid JSON: text after the end of the object at byte 15"},
    {"{\"prompt\":\"\xff\"}", "", "the body is not valid UTF-8 at byte 11"},
    {"{\"prompt\":\"\xed\xa0\x80\"}", "", "the body is not valid UTF-8 at byte 11"},
};

}  // namespace

TEST_CASE("Every malformed field is refused with its name, its value and what would be right",
          "[net][openai]") {
  const support::FakeService service(support::byte_tokenizer());
  for (const Malformed& bad : kSampling) {
    check_refused(net::parse_chat_request(chat(bad.fields), service), bad);
    check_refused(net::parse_completion_request(completion(bad.fields), service), bad);
  }
  for (const Malformed& bad : kChat)
    check_refused(net::parse_chat_request(chat(bad.fields), service), bad);
  for (const Malformed& bad : kCompletion)
    check_refused(net::parse_completion_request(completion(bad.fields), service), bad);
  check_refused(net::parse_chat_request(R"({"model":"x"})", service),
                {"", "messages", "messages is required"});
  check_refused(net::parse_completion_request(R"({"model":"x"})", service),
                {"", "prompt", "prompt is required"});
}

TEST_CASE("A body that is not a JSON object is refused by every endpoint", "[net][openai]") {
  const support::FakeService service(support::byte_tokenizer());
  auto bodies = kBodies;
  bodies.push_back({"{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}", "",
                    "the body is nested deeper than 64 levels"});
  bodies.push_back({std::string(1000000, '['), "", "the body is nested deeper than 64 levels"});
  for (const Malformed& bad : bodies) {
    check_refused(net::parse_chat_request(bad.fields, service), bad);
    check_refused(net::parse_completion_request(bad.fields, service), bad);
    check_refused(net::answer_tokenize(bad.fields, service), bad);
    check_refused(net::answer_detokenize(bad.fields, service), bad);
  }
}

TEST_CASE("An adapter that is not loaded is not found", "[net][openai]") {
  const support::FakeService service(support::byte_tokenizer());
  const Malformed bad = {
      R"("model":"tiny-k3:poet")", "model",
      R"(model names the adapter "poet" (after the colon), and no adapter of that name is loaded)"};
  check_refused(net::parse_chat_request(chat(bad.fields), service), bad,
                kernels::ErrorCode::kNotFound);
  check_refused(net::parse_completion_request(completion(bad.fields), service), bad,
                kernels::ErrorCode::kNotFound);
}

TEST_CASE("Without a tokenizer everything that needs text is refused", "[net][openai]") {
  const support::FakeService service;
  check_refused(
      net::parse_chat_request(chat("\"n\":1"), service),
      {"", "messages",
       "messages need a tokenizer, and this model has none; /v1/completions takes token ids"});
  check_refused(net::parse_completion_request(completion("\"n\":1"), service),
                {"", "prompt", "prompt must be token ids: this model has no tokenizer"});
  check_refused(
      net::parse_completion_request(R"({"prompt":[1],"stop":"a"})", service),
      {"", "stop", "stop needs a tokenizer, and this model has none; use stop_token_ids"});
  check_refused(net::answer_tokenize(R"({"prompt":"a"})", service),
                {"", "", "this model has no tokenizer"});
  check_refused(net::answer_detokenize(R"({"tokens":[1]})", service),
                {"", "", "this model has no tokenizer"});
}

TEST_CASE("Malformed token questions are refused", "[net][openai]") {
  const support::FakeService service(support::byte_tokenizer());
  check_refused(net::answer_tokenize("{}", service),
                {"", "prompt", "give either prompt or messages"});
  check_refused(net::answer_tokenize(R"({"prompt":"a","messages":[]})", service),
                {"", "prompt", "give either prompt or messages"});
  check_refused(net::answer_tokenize(R"({"prompt":5})", service),
                {"", "prompt", "prompt must be a string, got 5"});
  check_refused(net::answer_tokenize(R"({"messages":[]})", service),
                {"", "messages", "messages must be a non-empty array, got an empty array"});
  check_refused(net::answer_detokenize("{}", service), {"", "tokens", "tokens is required"});
  check_refused(net::answer_detokenize(R"({"tokens":"a"})", service),
                {"", "tokens", R"(tokens must be an array, got "a")"});
  check_refused(net::answer_detokenize(R"({"tokens":[1,512]})", service),
                {"", "tokens[1]", "tokens[1] must be a token id between 0 and 511, got 512"});
}
