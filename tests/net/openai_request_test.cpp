// Good requests: what becomes of their fields.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>

#include "net/openai_api.hpp"
#include "tests/support/fake_service.hpp"
#include "tests/support/tokenizer_directory.hpp"

namespace {

namespace json = boost::json;
using runtime::ChatPrompt;
using support::byte_tokenizer;
using support::FakeService;

net::ParsedRequest parse_chat(const std::string& body,
                              const FakeService& service = FakeService(byte_tokenizer())) {
  auto parsed = net::parse_chat_request(body, service);
  INFO((parsed ? std::string() : parsed.error().message));
  REQUIRE(parsed.has_value());
  return std::move(*parsed);
}

net::ParsedRequest parse_completion(const std::string& body,
                                    const FakeService& service = FakeService(byte_tokenizer())) {
  auto parsed = net::parse_completion_request(body, service);
  INFO((parsed ? std::string() : parsed.error().message));
  REQUIRE(parsed.has_value());
  return std::move(*parsed);
}

ChatPrompt chat_prompt(const std::string& fields) {
  const auto parsed = parse_chat(R"({"messages":[{"role":"user","content":"hi"}])" + fields + "}");
  return std::get<ChatPrompt>(parsed.generate.prompts.at(0));
}

const std::string kTools =
    R"(,"tools":[{"type":"web_search"},{"type":"function","function":{"name":"f","parameters":{}}},
  {"type":"function","function":{"name":"g","description":"d","strict":true}}])";

}  // namespace

TEST_CASE("A bare chat request has the documented defaults", "[net][openai]") {
  const auto parsed = parse_chat(R"({"messages":[{"role":"user","content":"hi"}]})");
  const runtime::GenerateRequest& request = parsed.generate;
  CHECK_FALSE(parsed.stream);
  CHECK(request.n == 1);
  CHECK_FALSE(request.max_tokens.has_value());
  CHECK(request.parse_chat);
  CHECK(request.rid.rfind("chatcmpl-", 0) == 0);
  CHECK(request.sampling.temperature == 1.0f);
  CHECK(request.sampling.top_p == 1.0f);
  CHECK(request.sampling.top_k == 0);
  CHECK(request.sampling.top_logprobs == -1);
  CHECK(request.stop.empty());
  REQUIRE(request.prompts.size() == 1);
  const auto& prompt = std::get<ChatPrompt>(request.prompts[0]);
  CHECK(prompt.thinking);
  CHECK(prompt.effort == "max");
  CHECK(prompt.tools.is_null());
  CHECK(prompt.response_format.is_null());
  REQUIRE(prompt.messages.size() == 1);
  CHECK(prompt.messages[0].role == "user");
  CHECK(prompt.messages[0].content == "hi");
}

TEST_CASE(
    "Two requests without a seed get different ones; a client's seed is kept, negative or not",
    "[net][openai]") {
  const auto first = parse_chat(R"({"messages":[{"role":"user","content":"hi"}]})");
  const auto second = parse_chat(R"({"messages":[{"role":"user","content":"hi"}]})");
  CHECK(first.generate.sampling.seed != second.generate.sampling.seed);
  CHECK(first.generate.rid != second.generate.rid);
  CHECK(parse_completion(R"({"prompt":"a","seed":7})").generate.sampling.seed == 7);
  CHECK(parse_completion(R"({"prompt":"a","seed":-1})").generate.sampling.seed == UINT64_MAX);
  CHECK(parse_completion(R"({"prompt":"a","seed":18446744073709551615})").generate.sampling.seed ==
        UINT64_MAX);
}

TEST_CASE("Every sampling field reaches the request", "[net][openai]") {
  const auto parsed = parse_completion(
      R"({"prompt":[5,6],"model":"any/thing","temperature":0.5,"top_p":0.25,"top_k":7,
    "min_p":0.125,"repetition_penalty":1.5,"presence_penalty":-1,"frequency_penalty":2,"logit_bias":{"3":-100,"1":5},
    "n":3,"best_of":3,"stop":["a","b"],"stop_token_ids":[9],"seed":1,"logprobs":4,"echo":true,"max_tokens":0,
    "ignore_eos":true,"min_tokens":0,"skip_special_tokens":false,"include_stop_str_in_output":true,"priority":-4,
    "deadline_ms":1500,"cache_salt":"pepper","user":"u","prompt_cache_key":"agent","rid":"mine","stream":true,"stream_options":{"include_usage":true,
    "continuous_usage_stats":true},"unheard_of":{"x":[1]}})");
  const runtime::GenerateRequest& request = parsed.generate;
  const runtime::SamplingParams& sampling = request.sampling;
  CHECK(parsed.stream);
  CHECK(std::get<std::vector<runtime::TokenId>>(request.prompts.at(0)) ==
        std::vector<runtime::TokenId>{5, 6});
  CHECK(sampling.temperature == 0.5f);
  CHECK(sampling.top_p == 0.25f);
  CHECK(sampling.top_k == 7);
  CHECK(sampling.min_p == 0.125f);
  CHECK(sampling.repetition_penalty == 1.5f);
  CHECK(sampling.presence_penalty == -1.0f);
  CHECK(sampling.frequency_penalty == 2.0f);
  CHECK(sampling.logit_bias ==
        std::vector<std::pair<runtime::TokenId, float>>{{1, 5.0f}, {3, -100.0f}});
  CHECK(sampling.stop_ids == std::vector<runtime::TokenId>{9});
  CHECK(sampling.top_logprobs == 4);
  CHECK(sampling.ignore_eos);
  CHECK(request.n == 3);
  CHECK(request.stop == std::vector<std::string>{"a", "b"});
  CHECK(request.include_stop_text);
  CHECK_FALSE(request.skip_special_tokens);
  CHECK(request.prompt_logprobs);
  CHECK(request.max_tokens == 0u);
  CHECK(request.priority == -4);
  CHECK(request.deadline_ms == 1500u);
  CHECK(request.cache_salt == "pepper");
  CHECK(request.session == "agent");
  CHECK(request.rid == "mine");
  CHECK_FALSE(request.parse_chat);
}

TEST_CASE("null is absent, the last of repeated keys wins, and 16.0 is an integer",
          "[net][openai]") {
  const auto nulls =
      parse_completion(R"({"prompt":"a","temperature":null,"max_tokens":null,"stop":null,"n":null,
    "logit_bias":null,"stream":null,"stream_options":null,"logprobs":null,"suffix":null,"model":null})");
  CHECK_FALSE(nulls.generate.max_tokens);
  CHECK(nulls.generate.default_max_tokens == 16u);
  CHECK(nulls.generate.sampling.top_logprobs == -1);
  CHECK(parse_completion(R"({"prompt":"a","n":2,"n":5})").generate.n == 5);
  CHECK(parse_completion(R"({"prompt":"a","max_tokens":16.0})").generate.max_tokens == 16u);
}

TEST_CASE("Both names of max_tokens work for chat, the newer one first", "[net][openai]") {
  const std::string begin = R"({"messages":[{"role":"user","content":"hi"}],)";
  CHECK(parse_chat(begin + R"("max_tokens":3})").generate.max_tokens == 3u);
  CHECK(parse_chat(begin + R"("max_completion_tokens":4,"max_tokens":3})").generate.max_tokens ==
        4u);
}

TEST_CASE("A temperature too small to divide by is greedy, a tiny top_p stays above 0",
          "[net][openai]") {
  CHECK(parse_completion(R"({"prompt":"a","temperature":1e-30})").generate.sampling.temperature ==
        0.0f);
  CHECK(parse_completion(R"({"prompt":"a","top_p":1e-300})").generate.sampling.top_p > 0.0f);
}

TEST_CASE("All four forms of a completion prompt are read", "[net][openai]") {
  using Ids = std::vector<runtime::TokenId>;
  CHECK(std::get<std::string>(parse_completion(R"({"prompt":"ab"})").generate.prompts.at(0)) ==
        "ab");
  const auto texts = parse_completion(R"({"prompt":["a","b"],"n":2})").generate.prompts;
  CHECK(std::get<std::string>(texts.at(1)) == "b");
  CHECK(std::get<Ids>(parse_completion(R"({"prompt":[0,511]})").generate.prompts.at(0)) ==
        Ids{0, 511});
  const auto lists = parse_completion(R"({"prompt":[[1],[2,3]]})").generate.prompts;
  CHECK(std::get<Ids>(lists.at(0)) == Ids{1});
  CHECK(std::get<Ids>(lists.at(1)) == Ids{2, 3});
}

TEST_CASE("A conversation keeps its order, its reasoning and its calls", "[net][openai]") {
  const auto parsed = parse_chat(R"({"messages":[
    {"role":"developer","content":"rules"},
    {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"name":"ann"},
    {"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[
      {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}},
      {"id":"c2","type":"function","function":{"name":"g","arguments":""}}]},
    {"role":"tool","tool_call_id":"c1","content":"one"},
    {"role":"system","content":"3 tokens left"},
    {"role":"assistant","reasoning":"so","content":[{"type":"refusal","refusal":"no"}]},
    {"role":"system","tools":[{"type":"function","function":{"name":"late"}}]},
    {"role":"user","content":""}]})");
  const auto& messages = std::get<ChatPrompt>(parsed.generate.prompts.at(0)).messages;
  REQUIRE(messages.size() == 8);
  CHECK(messages[0].role == "system");
  CHECK(messages[1].content == "ab");
  CHECK(messages[1].name == "ann");
  CHECK(messages[2].reasoning == "hm");
  REQUIRE(messages[2].tool_calls.size() == 2);
  CHECK(messages[2].tool_calls[0].id == "c1");
  CHECK(messages[2].tool_calls[0].arguments == R"({"x": 1})");
  CHECK(messages[2].tool_calls[1].arguments == "{}");
  CHECK(messages[3].tool_call_id == "c1");
  CHECK(messages[4].role == "system");
  CHECK(messages[5].reasoning == "so");
  CHECK(messages[5].content == "no");
  CHECK(messages[6].tools.as_array().size() == 1);
  CHECK(messages[7].content.empty());
}

TEST_CASE("Tools that are not functions are left out, whatever else they hold", "[net][openai]") {
  CHECK(chat_prompt(kTools).tools.as_array().size() == 2);
  CHECK(chat_prompt(R"(,"tools":[])").tools.is_null());
  CHECK(chat_prompt(R"(,"tools":[{"type":"namespace","tools":7},{"type":"custom"}])")
            .tools.is_null());
}

TEST_CASE("tool_choice decides what may be called", "[net][openai]") {
  using runtime::ToolChoice;
  CHECK(chat_prompt(kTools).tool_choice == ToolChoice::kAuto);
  CHECK(chat_prompt(kTools + R"(,"tool_choice":"none")").tool_choice == ToolChoice::kNone);
  CHECK(chat_prompt(R"(,"tool_choice":"none")").tool_choice == ToolChoice::kAuto);
  CHECK(chat_prompt(kTools + R"(,"tool_choice":"required")").tool_choice == ToolChoice::kRequired);
  const auto named =
      chat_prompt(kTools + R"(,"tool_choice":{"type":"function","function":{"name":"g"}})");
  CHECK(named.tool_choice == ToolChoice::kRequired);
  REQUIRE(named.tools.as_array().size() == 1);
  CHECK(named.tools.at(0).at("function").at("name").as_string() == "g");
}

TEST_CASE("Thinking is set by effort, by the template's switch and by the server's default",
          "[net][openai]") {
  CHECK(chat_prompt(R"(,"reasoning_effort":"low")").effort == "low");
  CHECK_FALSE(chat_prompt(R"(,"reasoning_effort":"none")").thinking);
  CHECK_FALSE(chat_prompt(R"(,"chat_template_kwargs":{"thinking":false})").thinking);
  CHECK_FALSE(
      chat_prompt(R"(,"chat_template_kwargs":{"enable_thinking":false},"reasoning_effort":"high")")
          .thinking);
  CHECK(chat_prompt(R"(,"chat_template_kwargs":{"thinking":true,"other":5})").effort == "max");
  FakeService service(byte_tokenizer());
  service.facts.default_reasoning_effort = "medium";
  const auto parsed = parse_chat(R"({"messages":[{"role":"user","content":"hi"}]})", service);
  CHECK(std::get<ChatPrompt>(parsed.generate.prompts.at(0)).effort == "medium");
}

TEST_CASE("response_format is passed on unless it asks for text", "[net][openai]") {
  CHECK(chat_prompt(R"(,"response_format":{"type":"text"})").response_format.is_null());
  CHECK(chat_prompt(R"(,"response_format":{"type":"json_object"})")
            .response_format.at("type")
            .as_string() == "json_object");
  const auto schema =
      chat_prompt(R"(,"response_format":{"type":"json_schema","json_schema":{"schema":{"a":1}}})");
  CHECK(schema.response_format.at("json_schema").at("schema").at("a").as_int64() == 1);
}

TEST_CASE("Token-id prompts need no tokenizer", "[net][openai]") {
  const auto parsed =
      parse_completion(R"({"prompt":[1,2],"logprobs":0,"stop_token_ids":[3]})", FakeService());
  CHECK(parsed.generate.prompts.size() == 1);
}

TEST_CASE("Tokens of a text come back as that text", "[net][openai]") {
  const FakeService service(byte_tokenizer());
  const auto tokens =
      net::answer_tokenize(R"({"prompt":"h\u00e9 <|open|>","add_special_tokens":true})", service);
  REQUIRE(tokens.has_value());
  const auto parsed = json::parse(*tokens);
  CHECK(parsed.at("count").as_int64() == 12);  // bytes: text never yields a control id
  CHECK(parsed.at("max_model_len").as_int64() == 4096);
  const auto text =
      net::answer_detokenize(R"({"tokens":)" + json::serialize(parsed.at("tokens")) + "}", service);
  REQUIRE(text.has_value());
  CHECK(json::parse(*text).at("prompt").as_string() == "h\u00e9 <|open|>");
  CHECK(json::parse(*text).at("text").as_string() == "h\u00e9 <|open|>");
}

TEST_CASE("A conversation can be counted in tokens", "[net][openai]") {
  const auto tokens = net::answer_tokenize(R"({"messages":[{"role":"user","content":"hi"}]})",
                                           FakeService(byte_tokenizer()));
  REQUIRE(tokens.has_value());
  const auto parsed = json::parse(*tokens);
  CHECK(parsed.at("count").as_int64() ==
        static_cast<int64_t>(parsed.at("tokens").as_array().size()));
  CHECK(parsed.at("count").as_int64() > 20);
}

TEST_CASE("Text that cannot fit is not tokenized, and nothing is once nobody waits",
          "[net][openai]") {
  FakeService service(byte_tokenizer());
  service.facts.context_length = 10;
  const size_t most = 10 * service.tokenizer()->longest_token_bytes();
  const auto body = [](size_t bytes) { return R"({"prompt":")" + std::string(bytes, 'x') + "\"}"; };
  CHECK(net::answer_tokenize(body(most), service).has_value());
  const auto refused = net::answer_tokenize(body(most + 1), service);
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(refused.error().message,
             Catch::StartsWith("prompt: this server's context is 10 tokens of at most "));
  CHECK(refused.error().param == "prompt");

  std::string words;
  for (int i = 0; i < 50'000; ++i) words += " word";
  int questions = 0;
  const auto stopped =
      net::answer_tokenize(R"({"prompt":")" + words + "\"}", FakeService(byte_tokenizer()),
                           [&] { return ++questions < 5; });
  REQUIRE_FALSE(stopped.has_value());
  CHECK(questions <= 6);
}

TEST_CASE("Models and errors have OpenAI's shape", "[net][openai]") {
  const auto models = json::parse(net::models_json(FakeService().info()));
  CHECK(models.at("object").as_string() == "list");
  CHECK(models.at("data").at(0).at("id").as_string() == "tiny");
  CHECK(models.at("data").at(0).at("max_model_len").as_int64() == 4096);
  CHECK(models.at("models") == models.at("data"));
  using kernels::ErrorCode;
  const std::vector<std::pair<ErrorCode, unsigned>> statuses = {
      {ErrorCode::kInvalid, 400}, {ErrorCode::kNotFound, 404},  {ErrorCode::kFull, 429},
      {ErrorCode::kTimeout, 408}, {ErrorCode::kCancelled, 499}, {ErrorCode::kUnavailable, 503},
      {ErrorCode::kInternal, 500}};
  for (const auto& [code, status] : statuses) {
    CHECK(net::http_status(code) == status);
    const auto error = json::parse(net::error_json({code, "a \"b\"\n", ""}, status)).at("error");
    CHECK(error.at("message").as_string() == "a \"b\"\n");
    CHECK(error.at("param").is_null());
    CHECK(error.at("type").is_string());
    CHECK(error.as_object().contains("code"));
  }
  const auto model =
      json::parse(net::error_json({ErrorCode::kNotFound, "no", "model"}, 404)).at("error");
  CHECK(model.at("code").as_string() == "model_not_found");
  CHECK(model.at("param").as_string() == "model");
}
