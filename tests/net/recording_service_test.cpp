// Recording what a server serves: every accepted request leaves one line, however it ends.
#include "net/recording_service.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "net/trace/request_record.hpp"
#include "tests/support/fake_service.hpp"
#include "tests/support/temporary_directory.hpp"

using net::FinishedRequest;
using net::RecordFile;
using net::RecordStyle;
using net::RequestRecord;

namespace {

runtime::GenerateRequest completion(std::vector<runtime::Prompt> prompts, uint32_t n = 1) {
  runtime::GenerateRequest request;
  request.rid = "cmpl-1";
  request.session = "agent";
  request.prompts = std::move(prompts);
  request.n = n;
  return request;
}

actors::Delta delta(uint32_t choice, std::vector<runtime::TokenId> ids) {
  actors::Delta event;
  event.choice = choice;
  event.token_ids = std::move(ids);
  return event;
}

actors::ChoiceDone done(uint32_t choice, uint32_t tokens) {
  actors::ChoiceDone event;
  event.choice = choice;
  event.reason = runtime::FinishReason::kLength;
  event.output_tokens = tokens;
  return event;
}

std::vector<RequestRecord> records_in(const std::string& path) {
  std::vector<RequestRecord> records;
  bool header = true;
  net::for_each_json_row(net::read_trace_file(path), [&](net::Fields fields, size_t) {
    if (!std::exchange(header, false)) records.push_back(net::read_request_record(fields));
  });
  return records;
}

// What is recorded of requests that get these events, in turn.
std::vector<RequestRecord> recorded(const std::vector<std::vector<actors::SinkEvent>>& answers,
                                    const runtime::GenerateRequest& request,
                                    const RecordStyle& style = {2, false, 0}) {
  support::TemporaryDirectory directory;
  const std::string path = directory.file("record");
  {
    RecordFile file(path, "tiny", style);
    support::FakeService engine;
    net::RecordingService service(engine, file);
    for (const auto& events : answers) {
      engine.answer_at_once(events);
      REQUIRE(service.submit(request, [](actors::SinkEvent) { return true; }).has_value());
    }
  }
  return records_in(path);
}

FinishedRequest chat_request(std::vector<std::string> contents) {
  FinishedRequest request;
  runtime::ChatPrompt chat;
  std::vector<runtime::TokenId> ids;
  for (const std::string& content : contents) {
    runtime::ChatMessage message;
    message.role = "user";
    message.content = content;
    message.reasoning = "r" + std::to_string(contents.size());
    chat.messages.push_back(message);
    for (const char c : content) ids.push_back(c);
  }
  request.asked.parse_chat = true;
  request.asked.rid = "mine";
  request.asked.prompts.emplace_back(chat);
  request.prompts.emplace_back(ids);
  request.choices.push_back({{1, 2}, 2, "stop"});
  return request;
}

}  // namespace

TEST_CASE("A finished request is recorded with its prompts, its answers and its times", "[net]") {
  using Ids = std::vector<runtime::TokenId>;
  const auto records =
      recorded({{actors::Accepted{{{1, 2, 3}, {4}}}, delta(0, {5}), delta(3, {6, 7}), delta(0, {8}),
                 done(0, 2), done(3, 3), done(1, 0), done(2, 0), actors::Done{4, 2, 5}}},
               completion({Ids{1, 2, 3}, std::string("text")}, 2));
  REQUIRE(records.size() == 1);
  const RequestRecord& record = records[0];
  CHECK(record.endpoint == "completion");
  CHECK(record.id == "cmpl-1");
  CHECK(record.session == "agent");
  CHECK(record.cached_tokens == 2);
  CHECK(record.arrival_s <= record.first_token_s);
  CHECK(record.first_token_s <= record.end_s);
  REQUIRE(record.prompts.size() == 2);
  CHECK(std::get<Ids>(*record.prompts[0].content) == Ids{1, 2, 3});
  CHECK(std::get<std::string>(*record.prompts[1].content) == "text");
  CHECK(record.prompts[0].tokens == 3);
  CHECK(record.prompts[0].blocks.size() == 1);
  CHECK(record.prompts[1].blocks.empty());
  REQUIRE(record.choices.size() == 4);
  CHECK(record.choices[0].ids == Ids{5, 8});
  CHECK(record.choices[0].finish == "length");
  CHECK(record.choices[0].blocks.size() == 1);  // 1 2 | 3 5 | 8
  CHECK(record.choices[3].prompt == 1);
  CHECK(record.choices[3].ids == Ids{6, 7});
  CHECK(record.choices[3].tokens == 3);  // the token that ended it is part of no text
}

TEST_CASE("A request that is cut off is recorded as it is; one that never began is not", "[net]") {
  const kernels::Error gone{kernels::ErrorCode::kCancelled, "gone", {}};
  const kernels::Error broken{kernels::ErrorCode::kInternal, "broken", {}};
  const auto records =
      recorded({{actors::Failed{gone}},
                {actors::Accepted{{{1, 2, 3}}}, delta(0, {5}), actors::Failed{gone}},
                {actors::Accepted{{{1, 2, 3}}}, actors::Failed{broken}, actors::Failed{broken}}},
               completion({std::vector<runtime::TokenId>{1, 2, 3}}));
  REQUIRE(records.size() == 2);
  CHECK(records[0].choices[0].finish == "abort");
  CHECK(records[0].choices[0].tokens == 1);
  CHECK(records[1].choices[0].finish == "error");
  CHECK(records[1].first_token_s == 0);
}

TEST_CASE("The probe of health is no request to record", "[net]") {
  auto probe = completion({std::vector<runtime::TokenId>{0}});
  probe.rid = "health-probe";
  CHECK(recorded({{actors::Accepted{{{0}}}, done(0, 1), actors::Done{1, 0, 1}}}, probe).empty());
}

TEST_CASE("A hashed record holds no content, and the same shared prefixes", "[net]") {
  const auto style = [](uint64_t secret) { return RecordStyle{2, true, secret}; };
  const auto first = net::record_of(chat_request({"abcd", "ef"}), style(1));
  const auto next = net::record_of(chat_request({"abcd", "ef", "gh"}), style(1));
  const auto other = net::record_of(chat_request({"abxd", "ef"}), style(1));
  const std::string line = net::record_line(first);
  CHECK(line.find("abcd") == line.npos);
  CHECK(line.find("mine") == line.npos);
  CHECK(line.find("\"ids\"") == line.npos);
  CHECK_FALSE(first.prompts[0].content);
  REQUIRE(first.prompts[0].blocks.size() == 3);
  CHECK(std::equal(first.prompts[0].blocks.begin(), first.prompts[0].blocks.end(),
                   next.prompts[0].blocks.begin()));
  CHECK(other.prompts[0].blocks[0] == first.prompts[0].blocks[0]);
  CHECK(other.prompts[0].blocks[1] != first.prompts[0].blocks[1]);
  // What a client leaves out of its history does not hide that a conversation goes on.
  CHECK(next.prompts[0].messages[1] == first.prompts[0].messages[1]);
  CHECK(other.prompts[0].messages[1] != first.prompts[0].messages[1]);
  const auto secret = net::record_of(chat_request({"abcd", "ef"}), style(2));
  CHECK(secret.prompts[0].blocks[0] != first.prompts[0].blocks[0]);
  CHECK(secret.id != first.id);
}

TEST_CASE("Requests of different salts share nothing in a record", "[net]") {
  auto mine = chat_request({"abcd"}), yours = chat_request({"abcd"});
  mine.asked.cache_salt = "mine";
  yours.asked.cache_salt = "yours";
  const auto a = net::record_of(mine, {2, false, 0}), b = net::record_of(yours, {2, false, 0});
  CHECK(a.prompts[0].blocks[0] != b.prompts[0].blocks[0]);
}

TEST_CASE("A record that cannot be written is refused by name", "[net]") {
  CHECK_THROWS_WITH(RecordFile("/nonexistent/record", "m", {}),
                    Catch::StartsWith("/nonexistent/record: cannot be written"));
}
