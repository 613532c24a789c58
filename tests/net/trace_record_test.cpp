// Sluice's own record of requests: what is written is what is read, and who waited for whom is
// found again.
#include <catch2/catch.hpp>
#include <random>

#include "net/trace/request_record.hpp"
#include "tests/net/trace_files.hpp"

using net::RecordedChoice;
using net::RecordedPrompt;
using net::RecordHeader;
using net::RequestRecord;
using trace_files::complaint;
using trace_files::read_text;

namespace {

const std::string kHeader = net::record_line(RecordHeader{"tiny-k3", 4, 1.79e9, false}) + "\n";

runtime::ChatPrompt a_chat() {
  runtime::ChatPrompt chat;
  runtime::ChatMessage system{"system", "", "Be \"brief\".\n", "", {}, "", nullptr};
  runtime::ChatMessage user{"user", "Ada", "Grüße", "", {}, "", nullptr};
  runtime::ChatMessage assistant{"assistant", "",     "", "think", {{"c1", "look", R"({"a": 1})"}},
                                 "",          nullptr};
  runtime::ChatMessage tool{"tool", "", "found", "", {}, "c1", nullptr};
  chat.messages = {system, user, assistant, tool};
  chat.tools = boost::json::array{
      {{"type", "function"}, {"function", {{"name", "look"}, {"parameters", {{"x", 1.5}}}}}}};
  chat.tool_choice = runtime::ToolChoice::kRequired;
  chat.response_format = {{"type", "json_object"}};
  chat.effort = "low";
  return chat;
}

RequestRecord a_record() {
  RequestRecord record;
  record.arrival_s = 0.125;
  record.first_token_s = 0.1 + 0.2;
  record.end_s = 17.0;
  record.endpoint = "chat";
  record.id = "chatcmpl-1";
  record.session = "s";
  record.cached_tokens = 8;
  record.prompts.push_back({9, {(uint64_t{1} << 53) - 1, 5}, {11, 12}, a_chat()});
  record.prompts.push_back({2, {}, {}, std::string("plain\ttext")});
  record.prompts.push_back({3, {}, {}, std::vector<runtime::TokenId>{1, 2, 3}});
  record.prompts.push_back({5, {7}, {}, std::nullopt});
  record.choices.push_back({0, 3, "tool_calls", {6}, {4, 5, 6}});
  record.choices.push_back({3, 0, "abort", {}, {}});
  return record;
}

// A finished chat request whose conversation is the given messages, of one block each.
RequestRecord turn(double arrival_s, double end_s, std::vector<uint64_t> messages,
                   std::string session = "") {
  RequestRecord record;
  record.arrival_s = arrival_s;
  record.first_token_s = record.end_s = end_s;
  record.endpoint = "chat";
  record.id = "at " + std::to_string(arrival_s);
  record.session = std::move(session);
  RecordedPrompt prompt;
  prompt.tokens = static_cast<uint32_t>(4 * messages.size());
  prompt.blocks = messages;
  prompt.messages = std::move(messages);
  record.choices.push_back({0, 4, "stop", {prompt.blocks.back() * 10}, {}});
  record.prompts.push_back(std::move(prompt));
  return record;
}

net::Trace trace_of(const std::vector<RequestRecord>& records) {
  std::string text = kHeader;
  for (const auto& record : records) text += net::record_line(record) + "\n";
  return read_text(text);
}

}  // namespace

TEST_CASE("A record reads back as it was written", "[net]") {
  const std::string line = net::record_line(a_record());
  CHECK(line.find('\n') == line.npos);
  net::JsonBody body(line);
  const RequestRecord back = net::read_request_record(body.fields());
  REQUIRE_FALSE(body.error());
  CHECK(net::record_line(back) == line);
  CHECK(back.first_token_s == 0.1 + 0.2);
  CHECK(back.prompts[0].blocks[0] == (uint64_t{1} << 53) - 1);
  const auto& chat = std::get<runtime::ChatPrompt>(*back.prompts[0].content);
  const auto wanted = a_chat();
  REQUIRE(chat.messages.size() == wanted.messages.size());
  for (size_t i = 0; i < chat.messages.size(); ++i) {
    CHECK(chat.messages[i].role == wanted.messages[i].role);
    CHECK(chat.messages[i].name == wanted.messages[i].name);
    CHECK(chat.messages[i].content == wanted.messages[i].content);
    CHECK(chat.messages[i].reasoning == wanted.messages[i].reasoning);
    CHECK(chat.messages[i].tool_call_id == wanted.messages[i].tool_call_id);
  }
  CHECK(chat.messages[2].tool_calls[0].arguments == R"({"a": 1})");
  CHECK(chat.tools == wanted.tools);
  CHECK(chat.tool_choice == wanted.tool_choice);
  CHECK(chat.response_format == wanted.response_format);
  CHECK(chat.effort == "low");
  CHECK(std::get<std::string>(*back.prompts[1].content) == "plain\ttext");
  CHECK(std::get<std::vector<runtime::TokenId>>(*back.prompts[2].content).size() == 3);
  CHECK_FALSE(back.prompts[3].content);
}

TEST_CASE("A recorded prompt becomes requests with their texts, one per choice", "[net]") {
  RequestRecord record = a_record();
  record.choices.push_back({0, 1, "length", {}, {9}});
  const net::Trace trace = trace_of({record});
  CHECK(trace.format == net::TraceFormat::kRecord);
  CHECK(trace.block_tokens == 4);
  REQUIRE(trace.requests.size() == 3);
  CHECK(trace.sessions.size() == 1);
  CHECK(trace.requests[0].start_s == 0);
  CHECK(trace.requests[0].service_s == 17.0 - 0.125);
  CHECK(trace.requests[0].answer == std::vector<runtime::TokenId>{4, 5, 6});
  CHECK(trace.requests[0].text == trace.requests[2].text);
  CHECK_FALSE(trace.requests[1].text);
  CHECK(trace.requests[2].shared_blocks == 2);
  CHECK(trace.requests[2].conversation == 2);
}

TEST_CASE("Turns of a conversation find each other, also where it branches", "[net]") {
  const net::Trace trace = trace_of({
      turn(10, 12, {1}),
      turn(11, 13, {1}),                // the same words, asked beside the first: another session
      turn(15, 16, {1, 2, 3}),          // goes on from the one that was answered last
      turn(15.5, 18, {1, 2, 3, 4, 5}),  // 16 s was too late for it: goes on from the first too
      turn(20, 21, {1, 2, 6}),
      turn(22, 23, {7, 8}),
  });
  REQUIRE(trace.requests.size() == 6);
  CHECK_FALSE(trace.requests[0].after);
  CHECK_FALSE(trace.requests[1].after);
  CHECK(trace.requests[1].session != trace.requests[0].session);
  CHECK(trace.requests[2].after == 1u);
  CHECK(trace.requests[2].think_s == 2);
  CHECK(trace.requests[2].session == trace.requests[1].session);
  CHECK(trace.requests[2].conversation == 0);
  CHECK(trace.requests[3].after == 1u);
  CHECK(trace.requests[3].conversation == 1);
  CHECK(trace.requests[4].after == 1u);
  CHECK(trace.requests[4].conversation == 2);
  CHECK_FALSE(trace.requests[5].after);
  CHECK(trace.requests[2].shared_blocks == 1);
  CHECK(trace.requests[3].shared_with == 2u);
}

TEST_CASE(
    "A session that its client names holds its conversations, sub-agents behind what came "
    "before",
    "[net]") {
  const net::Trace trace = trace_of({
      turn(1, 2, {1}, "a"),
      turn(1, 2, {1}, "b"),
      turn(3, 4, {9}, "a"),  // a sub-agent's
      turn(5, 6, {1, 2, 3}, "a"),
  });
  REQUIRE(trace.sessions.size() == 2);
  CHECK(trace.sessions[0].name == "a");
  CHECK(trace.sessions[0].requests == 3);
  CHECK(trace.requests[2].session == 0);
  CHECK(trace.requests[2].conversation == 1);
  CHECK(trace.requests[2].after == 0u);
  CHECK(trace.requests[3].conversation == 0);
  CHECK(trace.requests[3].after == 0u);
}

TEST_CASE("A bad record is reported with its line and field", "[net]") {
  CHECK(complaint("{\"sluice_record\": 2, \"block_tokens\": 4}\n") ==
        "1: sluice_record must be an integer between 1 and 1, got 2");
  std::string line = net::record_line(turn(1, 2, {1}));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = line;
    changed.replace(changed.find(from), from.size(), to);
    return complaint(kHeader + changed + "\n");
  };
  CHECK(with("\"end_s\":2.0", "\"end_s\":0.5") ==
        "2: end_s must be no less than arrival_s, got 0.5");
  CHECK(with("\"blocks\":[1]", "\"blocks\":[1,2]") ==
        "2: prompts[0].blocks holds 2 hashes; a prompt of 4 tokens has 1 whole blocks of 4");
  CHECK(with("\"prompt\":0", "\"prompt\":1") ==
        "2: choices[0].prompt must be an integer between 0 and 0, got 1");
  CHECK(
      with("\"finish\":\"stop\"", "\"finish\":\"tired\"") ==
      "2: choices[0].finish must be one of stop, length, tool_calls, abort, error, got \"tired\"");
  CHECK(complaint(kHeader + line.substr(0, 30)).rfind("2: the line is not valid JSON", 0) == 0);
}
