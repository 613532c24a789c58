// Streamed chunks joined again are the whole answer; and a few answers byte by byte.
#include "net/openai_answer.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <map>

#include "openai_random.hpp"
#include "tests/support/tokenizer_directory.hpp"

namespace {

namespace json = boost::json;
using testing::Events;
using testing::RandomAnswer;
using Kind = runtime::ChatDelta::Kind;

net::AnswerHead head(bool include_usage = true) {
  return {"id-1", 1700000000, "m \"x\"", "fp_1", include_usage};
}

net::ChatAnswerOptions chat_options(uint32_t choices, bool logprobs) {
  return {head(), choices, logprobs, "key", support::byte_tokenizer()};
}

struct Both {
  json::value body;
  std::vector<json::value> chunks;  // without the closing [DONE]
};

Both run(const Events& events, net::Answer& streamed, net::Answer& collected) {
  Both both;
  std::vector<std::string> payloads;
  for (const auto& event : events) {
    streamed.stream(event, payloads);
    collected.collect(event);
  }
  REQUIRE_FALSE(payloads.empty());
  REQUIRE(payloads.back() == "[DONE]");
  payloads.pop_back();
  for (const auto& payload : payloads) {
    CAPTURE(payload);
    REQUIRE(payload.find('\n') == std::string::npos);  // a data: line is one line
    both.chunks.push_back(json::parse(payload));
  }
  both.body = json::parse(collected.body());
  return both;
}

// The oracle: what an OpenAI client does with the chunks of a chat stream.
json::value join_chat(const std::vector<json::value>& chunks, size_t choices) {
  std::vector<json::object> messages(choices);
  std::vector<json::value> logprobs(choices), reasons(choices), stops(choices);
  json::value usage;
  for (const auto& chunk : chunks) {
    CHECK(chunk.at("object").as_string() == "chat.completion.chunk");
    if (!chunk.at("usage").is_null()) {
      CHECK(chunk.at("choices").as_array().empty());
      usage = chunk.at("usage");
      continue;
    }
    const json::value& choice = chunk.at("choices").at(0);
    const size_t index = choice.at("index").to_number<size_t>();
    json::object& message = messages.at(index);
    for (const auto& [key, value] : choice.at("delta").as_object()) {
      if (key == "role") {
        REQUIRE_FALSE(message.contains("role"));
        message["role"] = value;
      } else if (key == "tool_calls") {
        const json::value& piece = value.at(0);
        if (!message.contains("tool_calls")) message["tool_calls"] = json::array();
        auto& calls = message["tool_calls"].as_array();
        const size_t call = piece.at("index").to_number<size_t>();
        if (call == calls.size())
          calls.push_back(piece);  // names its id, type and function
        else
          calls.at(call).at("function").at("arguments").as_string() +=
              piece.at("function").at("arguments").as_string();
      } else {
        if (!message.contains(key)) message[key] = "";
        message[key].as_string() += value.as_string();
      }
    }
    if (!choice.at("logprobs").is_null()) {
      if (logprobs[index].is_null()) logprobs[index] = json::array();
      for (const auto& entry : choice.at("logprobs").at("content").as_array())
        logprobs[index].as_array().push_back(entry);
    }
    if (choice.at("finish_reason").is_null()) continue;
    REQUIRE(reasons[index].is_null());
    reasons[index] = choice.at("finish_reason");
    stops[index] = choice.at("matched_stop");
  }
  json::array all;
  for (size_t i = 0; i < choices; ++i) {
    json::object& message = messages[i];
    if (message.at("content").as_string().empty() && message.contains("tool_calls"))
      message["content"] = nullptr;
    message["refusal"] = nullptr;
    json::value content =
        logprobs[i].is_null() ? json::value() : json::value({{"content", logprobs[i]}});
    all.push_back({{"index", i},
                   {"message", message},
                   {"logprobs", content},
                   {"finish_reason", reasons[i]},
                   {"matched_stop", stops[i]}});
  }
  return {{"choices", all}, {"usage", usage}};
}

void append_json(json::value& array, const json::value& more) {
  if (array.is_null()) array = json::array();
  for (const auto& element : more.as_array()) array.as_array().push_back(element);
}

json::value join_completion(const std::vector<json::value>& chunks, size_t choices) {
  std::vector<json::object> joined(choices);
  json::value usage;
  for (const auto& chunk : chunks) {
    if (!chunk.at("usage").is_null()) {
      usage = chunk.at("usage");
      continue;
    }
    const json::object& choice = chunk.at("choices").at(0).as_object();
    const size_t index = choice.at("index").to_number<size_t>();
    json::object& all = joined.at(index);
    all["index"] = index;
    if (!all.contains("text")) all["text"] = "";
    all["text"].as_string() += choice.at("text").as_string();
    for (const char* ids : {"token_ids", "prompt_token_ids"})
      if (choice.contains(ids)) append_json(all[ids], choice.at(ids));
    if (!all.contains("logprobs")) all["logprobs"] = nullptr;
    if (const auto* logprobs = choice.at("logprobs").if_object()) {
      if (all["logprobs"].is_null()) all["logprobs"] = json::object();
      for (const auto& [key, list] : *logprobs) append_json(all["logprobs"].as_object()[key], list);
    }
    if (choice.at("finish_reason").is_null()) continue;
    all["finish_reason"] = choice.at("finish_reason");
    all["matched_stop"] = choice.at("matched_stop");
  }
  return {{"choices", json::array(joined.begin(), joined.end())}, {"usage", usage}};
}

void check_same(const json::value& joined, const json::value& body) {
  CHECK(json::serialize(joined.at("choices")) == json::serialize(body.at("choices")));
  CHECK(joined.at("choices") == body.at("choices"));
  CHECK(joined.at("usage") == body.at("usage"));
}

// Sorts the keys, so that two objects compare as texts too.
json::value sorted(const json::value& value) {
  if (const auto* array = value.if_array()) {
    json::array out;
    for (const auto& element : *array) out.push_back(sorted(element));
    return out;
  }
  if (!value.is_object()) return value;
  std::map<std::string, json::value> entries;
  for (const auto& [key, element] : value.as_object()) entries[std::string(key)] = sorted(element);
  json::object out;
  for (const auto& [key, element] : entries) out[key] = element;
  return out;
}

}  // namespace

TEST_CASE("The chunks of any chat stream join to the unstreamed answer",
          "[net][openai][property]") {
  const auto seed = GENERATE(range(0u, 200u));
  CAPTURE(seed);
  RandomAnswer random{std::mt19937(seed)};
  const uint32_t n = 1 + random.below(3);
  const bool logprobs = random.below(2) == 0;
  const auto events = random.events(1, n, true, logprobs, false);
  const auto streamed = net::make_chat_answer(chat_options(n, logprobs));
  const auto collected = net::make_chat_answer(chat_options(n, logprobs));
  const Both both = run(events, *streamed, *collected);
  check_same(sorted(join_chat(both.chunks, n)), sorted(both.body));
}

TEST_CASE("The chunks of any completion stream join to the unstreamed answer",
          "[net][openai][property]") {
  const auto seed = GENERATE(range(0u, 200u));
  CAPTURE(seed);
  RandomAnswer random{std::mt19937(seed)};
  net::CompletionAnswerOptions options;
  options.head = head();
  options.prompts = 1 + random.below(3);
  options.n = 1 + random.below(3);
  options.echo = random.below(2) == 0;
  options.logprobs = random.below(2) == 0;
  options.return_token_ids = random.below(2) == 0;
  options.tokens_as_ids = random.below(2) == 0;
  options.skip_special_tokens = random.below(2) == 0;
  if (random.below(4) != 0) options.tokenizer = support::byte_tokenizer();
  const auto events = random.events(options.prompts, options.n, false, options.logprobs,
                                    options.echo && options.logprobs);
  const auto streamed = net::make_completion_answer(options);
  const auto collected = net::make_completion_answer(options);
  const Both both = run(events, *streamed, *collected);
  check_same(sorted(join_completion(both.chunks, size_t{options.prompts} * options.n)),
             sorted(both.body));
}

TEST_CASE("A chat stream starts with the role, names calls before arguments and ends with usage",
          "[net][openai]") {
  auto options = chat_options(1, false);
  const auto answer = net::make_chat_answer(options);
  std::vector<std::string> out;
  actors::Delta delta;
  delta.chat = {{Kind::kReasoning, "h", 0, {}},
                {Kind::kReasoning, "m", 0, {}},
                {Kind::kContent, "ok", 0, {}},
                {Kind::kToolBegin, "", 0, "f"},
                {Kind::kToolArguments, "{}", 0, {}}};
  actors::ChoiceDone done;
  done.tool_calls = true;
  done.stop_id = 258;
  done.reasoning_tokens = 2;
  for (const actors::SinkEvent& event :
       Events{actors::Accepted{{{1, 2}}}, delta, done, actors::Done{2, 1, 9}})
    answer->stream(event, out);
  const std::string begin =
      R"({"id":"id-1","object":"chat.completion.chunk","created":1700000000,"model":"m \"x\"",)"
      R"("system_fingerprint":"fp_1","choices":[)";
  const auto chunk = [&](const std::string& fields) {
    return begin + R"({"index":0,"delta":{)" + fields + R"(}],"usage":null})";
  };
  const std::string open = R"(},"logprobs":null,"finish_reason":null)";
  CHECK(
      out ==
      std::vector<std::string>{
          chunk(R"("role":"assistant","content":"")" + open),
          chunk(R"("reasoning_content":"hm")" + open), chunk(R"("content":"ok")" + open),
          chunk(
              R"("tool_calls":[{"index":0,"id":"call_key_0_0","type":"function","function":{"name":"f","arguments":""}}])" +
              open),
          chunk(R"("tool_calls":[{"index":0,"function":{"arguments":"{}"}}])" + open),
          chunk(R"(},"logprobs":null,"finish_reason":"tool_calls","matched_stop":258)"),
          begin +
              R"(],"usage":{"prompt_tokens":2,"completion_tokens":9,"total_tokens":11,)"
              R"("prompt_tokens_details":{"cached_tokens":1},"completion_tokens_details":{"reasoning_tokens":2}}})",
          "[DONE]"});
}

TEST_CASE("A failed stream ends with an error and [DONE]", "[net][openai]") {
  const auto answer = net::make_chat_answer(chat_options(1, false));
  std::vector<std::string> out;
  answer->stream(actors::Accepted{{{1}}}, out);
  out.clear();
  answer->stream(actors::Failed{{kernels::ErrorCode::kInternal, "the logits are not finite", ""}},
                 out);
  CHECK(
      out ==
      std::vector<std::string>{
          R"({"error":{"message":"the logits are not finite","type":"server_error","param":null,"code":"internal_error"}})",
          "[DONE]"});
}

TEST_CASE("Log-probabilities of a chat answer name bytes that are no text", "[net][openai]") {
  const auto answer = net::make_chat_answer(chat_options(1, true));
  actors::Delta delta;
  delta.token_ids = {0xE2};
  delta.logprobs = {{{0xE2, -0.5f}, {{0xE2, -0.5f}, {'a', -1.25f}}}};
  for (const actors::SinkEvent& event :
       Events{actors::Accepted{{{1}}}, delta, actors::ChoiceDone{}, actors::Done{}})
    answer->collect(event);
  const auto content = json::parse(answer->body()).at("choices").at(0).at("logprobs").at("content");
  CHECK(
      json::serialize(content) ==
      R"([{"token":"bytes:\\xe2","logprob":-5E-1,"bytes":[226],"top_logprobs":[)"
      R"({"token":"bytes:\\xe2","logprob":-5E-1,"bytes":[226]},{"token":"a","logprob":-1.25E0,"bytes":[97]}]}])");
}

TEST_CASE(
    "echo with log-probabilities scores a prompt: null for its first token, offsets in code points",
    "[net][openai]") {
  net::CompletionAnswerOptions options;
  options.head = head(false);
  options.echo = options.logprobs = options.return_token_ids = true;
  options.tokenizer = support::byte_tokenizer();
  const auto answer = net::make_completion_answer(options);
  actors::Delta delta;  // max_tokens 0: nothing generated
  const std::vector<runtime::TokenId> prompt = {'a', 0xC3, 0xA9, 'b'};
  for (size_t i = 1; i < prompt.size(); ++i)
    delta.prompt_logprobs.push_back({{prompt[i], -1.0f}, {{'x', -0.25f}}});
  actors::ChoiceDone done;
  done.reason = runtime::FinishReason::kLength;
  for (const actors::SinkEvent& event :
       Events{actors::Accepted{{prompt}}, delta, done, actors::Done{4, 0, 0}})
    answer->collect(event);
  const auto choice = json::parse(answer->body()).at("choices").at(0);
  CHECK(choice.at("text").as_string() == "a\u00e9b");
  CHECK(choice.at("token_ids").as_array().empty());
  CHECK(json::serialize(choice.at("prompt_token_ids")) == "[97,195,169,98]");
  CHECK(choice.at("finish_reason").as_string() == "length");
  const auto& logprobs = choice.at("logprobs");
  CHECK(json::serialize(logprobs.at("tokens")) == R"(["a","bytes:\\xc3","bytes:\\xa9","b"])");
  CHECK(json::serialize(logprobs.at("token_logprobs")) == R"([null,-1,-1,-1])");
  CHECK(json::serialize(logprobs.at("text_offset")) == "[0,1,2,2]");
  CHECK(logprobs.at("top_logprobs").at(0).is_null());
  CHECK(json::serialize(logprobs.at("top_logprobs").at(3)) == R"({"x":-2.5E-1,"b":-1})");
}

TEST_CASE("Tokens can be named by id, and two tokens of one name keep the likelier",
          "[net][openai]") {
  net::CompletionAnswerOptions options;
  options.head = head(false);
  options.logprobs = options.tokens_as_ids = true;
  options.tokenizer = support::byte_tokenizer();
  const auto answer = net::make_completion_answer(options);
  actors::Delta delta;
  delta.text = "a";
  delta.token_ids = {'a'};
  delta.logprobs = {{{'a', -1.0f}, {{'a', -1.0f}, {300, -2.0f}}}};
  for (const actors::SinkEvent& event :
       Events{actors::Accepted{{{1}}}, delta, actors::ChoiceDone{}, actors::Done{}})
    answer->collect(event);
  const auto logprobs = json::parse(answer->body()).at("choices").at(0).at("logprobs");
  CHECK(json::serialize(logprobs.at("tokens")) == R"(["token_id:97"])");
  CHECK(json::serialize(logprobs.at("top_logprobs")) ==
        R"([{"token_id:97":-1,"token_id:300":-2}])");
}
