// Readers of public trace formats: what they make of small files, and how they complain.
#include <catch2/catch.hpp>

#include "tests/net/trace_files.hpp"

using net::Trace;
using net::TraceClock;
using net::TraceFormat;
using trace_files::complaint;
using trace_files::Files;
using trace_files::read;
using trace_files::read_text;

namespace {

const std::string kMooncake =
    R"({"timestamp": 500, "input_length": 20, "output_length": 5, "hash_ids": [7, 8]}
{"timestamp": 0, "input_length": 33, "output_length": 6, "hash_ids": [7, 8, 9]}

{"timestamp": 500, "input_length": 16, "output_length": 7, "hash_ids": [7]}
)";

// A request, three blocks, then a sub-agent of two requests, then a request that goes on.
const std::string kSession = R"({"id": "s", "models": ["m"], "block_size": 4,
 "hash_id_scope": "local", "requests": [
 {"t": 0.0, "type": "n", "in": 13, "out": 9, "hash_ids": [1, 2, 3], "api_time": 2.5, "think_time": 0.0},
 {"t": 9.0, "type": "subagent", "agent_id": "a", "duration_ms": 6000, "requests": [
   {"t": 0.0, "type": "n", "in": 8, "out": 1, "hash_ids": [1, 9], "api_time": 1.0},
   {"t": 4.0, "type": "s", "in": 9, "out": 2, "hash_ids": [1, 9], "think_time": 2.5}]},
 {"t": 10.0, "type": "n", "in": 16, "out": 3, "hash_ids": [1, 2, 3, 4], "think_time": 7.0}]})";

const std::string kTreeHeader =
    "trace,conv,parent_conv,req,t,type,model,in,out,api_time,think_time,stop,n_blocks,lcp_blocks,"
    "lcp_req\n";

std::string session_with(const std::string& request) {
  return "{\"id\": \"s\", \"block_size\": 4,\n\"requests\": [\n" + request + "]}";
}

}  // namespace

TEST_CASE("Mooncake rows come in the order of time, ties by file order, and share blocks globally",
          "[net]") {
  const Trace trace = read_text(kMooncake, 16);
  CHECK(trace.format == TraceFormat::kMooncake);
  CHECK(trace.clock == TraceClock::kShared);
  CHECK(trace.block_tokens == 16);
  REQUIRE(trace.requests.size() == 3);
  REQUIRE(trace.sessions.size() == 3);
  CHECK(trace.requests[0].input_tokens == 33);
  CHECK_FALSE(trace.requests[0].shared_with);
  CHECK(trace.requests[1].start_s == 0.5);
  CHECK(trace.requests[1].output_tokens == 5);
  CHECK(trace.requests[1].shared_blocks == 2);
  CHECK(trace.requests[1].shared_with == 0u);
  CHECK(trace.requests[2].output_tokens == 7);
  CHECK(trace.requests[2].shared_blocks == 1);
  CHECK(trace.requests[2].session == 2);
  CHECK(trace.sessions[2].name == "line 4");
}

TEST_CASE("A compressed trace reads as the plain one, and a cut one is refused", "[net]") {
  Files files;
  const std::string path = files.write_gzip("any.name", kMooncake);
  CHECK(read({path}, 16).requests.size() == 3);
  std::string bytes = kMooncake;
  for (int i = 0; i < 6; ++i) bytes += bytes;
  const std::string large = files.write_gzip("large", bytes);
  std::filesystem::resize_file(large, std::filesystem::file_size(large) - 12);
  CHECK_THROWS_WITH(read({large}, 16), Catch::Contains(large + ": cannot be unpacked"));
  CHECK_THROWS_WITH(read({files.directory() + "/none"}), Catch::Contains("none: cannot be read"));
}

TEST_CASE("A bad Mooncake row is reported with its line and field", "[net]") {
  const std::string good = kMooncake.substr(0, kMooncake.find('\n') + 1);
  const auto second = [&](const std::string& row) { return complaint(good + row + "\n", 16); };
  CHECK(second(R"({"timestamp": 1, "input_length": -3, "output_length": 1, "hash_ids": []})") ==
        "2: input_length must be an integer between 0 and 1073741824, got -3");
  CHECK(second(R"({"timestamp": 1, "output_length": 1, "hash_ids": []})") ==
        "2: input_length is required");
  CHECK(second(R"({"timestamp": "x", "input_length": 1, "output_length": 1, "hash_ids": [1]})") ==
        "2: timestamp must be a number between 0 and 1e+12, got \"x\"");
  CHECK(
      second(R"({"timestamp": 1, "input_length": 33, "output_length": 1, "hash_ids": [1, 2.5]})") ==
      "2: hash_ids[1] must be an integer between 0 and 2^53, got 2.5");
  CHECK(second(R"({"timestamp": 1, "input_length": 33, "output_length": 1, "hash_ids": [1]})") ==
        "2: hash_ids holds 1 blocks; a prompt of 33 tokens has 2 whole ones of 16 tokens "
        "(--block-tokens says how many)");
  CHECK(second(R"({"timestamp": 1, )") ==
        "2: the line is not valid JSON: it ends too early at byte 17");
  CHECK(second("[]") == "2: the line must be a JSON object, got an empty array");
}

TEST_CASE(
    "A raw session has its sub-agent as a conversation that starts when its parent's answer "
    "let it",
    "[net]") {
  const Trace trace = read_text(kSession);
  CHECK(trace.format == TraceFormat::kAgentJson);
  CHECK(trace.clock == TraceClock::kOwn);
  CHECK(trace.block_tokens == 4);
  REQUIRE(trace.sessions.size() == 1);
  CHECK(trace.sessions[0].name == "s");
  REQUIRE(trace.requests.size() == 4);
  const auto& agent = trace.requests[1];  // done at 9 s after 6 s
  CHECK(agent.start_s == 3.0);
  CHECK(agent.conversation == 1);
  CHECK(agent.after == 0u);
  CHECK(agent.think_s == 0.5);
  CHECK(agent.shared_blocks == 1);
  const auto& second = trace.requests[2];
  CHECK(second.start_s == 7.0);
  CHECK(second.after == 1u);
  CHECK(second.think_s == 2.5);
  CHECK(second.service_s == 0);
  CHECK(second.shared_blocks == 2);
  CHECK(second.shared_with == 1u);
  const auto& last = trace.requests[3];
  CHECK(last.conversation == 0);
  CHECK(last.after == 0u);
  CHECK(last.think_s == 7.0);
  CHECK(last.shared_blocks == 3);
}

TEST_CASE("A directory stands for the sessions in it, whose ids are local", "[net]") {
  Files files;
  files.write("b.txt", kSession);
  files.write("a.json", kSession);
  files.write("LICENSE", "words\n");
  files.write("other.jsonl", kMooncake);
  const Trace trace = read({files.directory()});
  REQUIRE(trace.sessions.size() == 2);
  REQUIRE(trace.requests.size() == 8);
  CHECK(trace.requests[4].session == 1);
  CHECK_FALSE(trace.requests[4].shared_with);
  CHECK(trace.requests[5].after == 4u);
  CHECK(trace.requests[5].shared_with == 4u);
  Files empty;
  CHECK_THROWS_WITH(read({empty.directory()}), Catch::Contains("holds no kv-cache-tester session"));
}

TEST_CASE("A mistake in a raw session is reported with its line and path", "[net]") {
  CHECK(complaint(session_with(R"({"t": 0, "type": "n", "in": "4", "out": 1, "hash_ids": [1]})")) ==
        "3: requests[0].in must be an integer between 0 and 1073741824, got \"4\"");
  CHECK(complaint(session_with(R"({"t": 0, "type": "q"})")) ==
        "3: requests[0].type must be one of n, s, subagent, got \"q\"");
  CHECK(complaint(session_with("{\"t\": 3, \"type\": \"subagent\", \"requests\": [\n\n"
                               R"({"t": 0, "type": "n", "in": 9, "out": 1, "hash_ids": [1]}]})")) ==
        "5: requests[0].requests[0].hash_ids holds 1 blocks; a prompt of 9 tokens has 2 whole ones "
        "of 4 tokens (--block-tokens says how many)");
  const std::string late = R"({"t": 5, "type": "n", "in": 0, "out": 1, "hash_ids": []},)";
  CHECK(complaint(session_with(late + "\n" +
                               R"({"t": 4, "type": "n", "in": 0, "out": 1, "hash_ids": []})")) ==
        "4: requests[1].t must be no less than that of the request before it, got 4");
  CHECK(complaint("{\"id\": \"s\",\n\"requests\": [}") ==
        "2: the file is not valid JSON: syntax error at byte 25");
}

TEST_CASE("A tree's sub-agent starts at the latest answer that leaves it the time to run",
          "[net]") {
  // The parent asks at 0, 10 and 50 s; the sub-agent takes 20 s, so 11 s is when it can begin.
  const Trace trace = read_text(kTreeHeader +
                                    "a,0,,0,0.0,n,m,8,1,1.0,0.0,x,2,0,-1\n"
                                    "a,0,,1,10.0,n,m,12,1,1.0,9.0,x,3,2,0\n"
                                    "a,0/1,0,2,0.0,n,m,8,1,5.0,0.0,x,2,1,1\n"
                                    "a,0/1,0,3,15.0,s,m,8,1,5.0,10.0,,2,2,2\n"
                                    "a,0,,4,50.0,n,m,16,1,,39.0,,4,3,1\n"
                                    "b,0,,0,0.0,n,m,8,1,1.0,0.0,x,2,0,-1\n",
                                4);
  CHECK(trace.format == TraceFormat::kAgentTree);
  REQUIRE(trace.sessions.size() == 2);
  CHECK(trace.sessions[0].requests == 5);
  REQUIRE(trace.requests.size() == 6);
  CHECK(trace.requests[2].start_s == 11);
  CHECK(trace.requests[2].after == 1u);
  CHECK(trace.requests[2].think_s == 0);
  CHECK(trace.requests[2].shared_with == 0u);  // the earliest that begins so
  CHECK(trace.requests[3].start_s == 26);
  CHECK(trace.requests[3].think_s == 10);
  CHECK(trace.requests[4].after == 1u);
  CHECK(trace.requests[4].service_s == 0);
  CHECK(trace.requests[5].session == 1);
  CHECK_FALSE(trace.requests[5].shared_with);
}

TEST_CASE("Sub-agents that ran side by side are interleaved, and share as their order has it",
          "[net]") {
  const Trace trace = read_text(kTreeHeader +
                                    "a,0,,0,0.0,n,m,4,1,1.0,0.0,x,1,0,-1\n"
                                    "a,0/1,0,1,0.0,n,m,8,1,1.0,0.0,x,2,0,-1\n"
                                    "a,0/1,0,2,9.0,n,m,16,1,1.0,8.0,x,4,2,1\n"
                                    "a,0/2,0,3,0.0,n,m,8,1,1.0,0.0,x,2,2,1\n"
                                    "a,0/2,0,4,5.0,n,m,12,1,1.0,4.0,x,3,3,2\n"
                                    "a,0,,5,20.0,n,m,4,1,1.0,19.0,x,1,1,0\n",
                                4);
  REQUIRE(trace.requests.size() == 6);
  CHECK(trace.requests[1].conversation == 1);
  CHECK(trace.requests[2].conversation == 2);
  CHECK(trace.requests[2].shared_with == 1u);
  // File row 4 comes before row 2 in time: it brings the third block, which row 2 then shares.
  CHECK(trace.requests[3].conversation == 2);
  CHECK(trace.requests[3].shared_blocks == 2);
  CHECK(trace.requests[3].shared_with == 1u);
  CHECK(trace.requests[4].conversation == 1);
  CHECK(trace.requests[4].shared_blocks == 3);
  CHECK(trace.requests[4].shared_with == 3u);
  CHECK(trace.requests[4].after == 1u);
}

TEST_CASE("A bad tree row is reported with its line and column", "[net]") {
  const std::string good = kTreeHeader + "a,0,,0,0.0,n,m,8,1,1.0,0.0,x,2,0,-1\n";
  const auto second = [&](const std::string& row) { return complaint(good + row + "\n", 4); };
  CHECK(second("a,0,,1,x,n,m,8,1,1.0,0.0,x,2,0,-1") ==
        "3: t must be a number between 0.0 and 1000000000.0, got \"x\"");
  CHECK(second("a,0,,2,1.0,n,m,8,1,1.0,0.0,x,2,0,-1") ==
        "3: req must be 1, as rows of a trace count up, got \"2\"");
  CHECK(second("a,0,,1,1.0,n,m,8,1,1.0,0.0,x,2,3,0") ==
        "3: lcp_blocks must be an integer between 1 and 2, got \"3\"");
  CHECK(second("a,0,,1,1.0,n,m,8,1,1.0,0.0,x,2,2,1") ==
        "3: lcp_req must be an integer between -1 and 0, got \"1\"");
  CHECK(second("a,0/1,7,1,1.0,n,m,8,1,1.0,0.0,x,2,2,0") ==
        "3: parent_conv must be a conversation of an earlier row of the trace, got \"7\"");
  CHECK(second("a,0,,1,1.0,n,m,8,1") == "3: has 9 fields; the header names 15");
  CHECK(second("a,0,,1,1.0,n,m,8,1,1.0,0.0,x,5,2,0") ==
        "3: n_blocks holds 5 blocks; a prompt of 8 tokens has 2 of 4 tokens (--block-tokens says "
        "how many)");
  CHECK(second("b,0,,0,0.0,n,m,8,1,1.0,0.0,x,2,0,-1\na,0,,0,0.0,n,m,8,1,1.0,0.0,x,2,0,-1") ==
        "4: trace a began in line 2; its rows must stand together");
  CHECK(complaint("trace,lcp_blocks\n") == "1: the header has no column conv");
}

TEST_CASE("Azure times count from the first request, to a tenth of a microsecond", "[net]") {
  const Trace trace = read_text(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2024-02-29 00:00:01.5000000,10,2\r\n"
      "2024-02-28 23:59:59.9799600,4808,10\r\n"
      "2024-03-01 00:00:00+00:00,7,1\r\n");
  CHECK(trace.format == TraceFormat::kAzure);
  CHECK_FALSE(trace.has_prefixes);
  REQUIRE(trace.requests.size() == 3);
  CHECK(trace.requests[0].input_tokens == 4808);
  CHECK(trace.requests[0].start_s == 0);
  CHECK(trace.requests[1].start_s == Approx(1.52004).epsilon(1e-12));
  CHECK(trace.requests[2].start_s == Approx(86400.02004).epsilon(1e-12));
  CHECK(complaint("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,1\n") ==
        "2: TIMESTAMP must be a time like 2023-11-16 18:17:03.9799600, got \"yesterday\"");
  CHECK(complaint("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,1,\n") ==
        "2: GeneratedTokens must be an integer between 0 and 1073741824, got nothing");
}

TEST_CASE("What is no trace is refused with what would be one", "[net]") {
  for (const char* text : {"", "hello\n", "{\"a\": 1}\n", "a,b\n1,2\n", "[1]\n"}) {
    CAPTURE(text);
    CHECK_THAT(complaint(text), Catch::StartsWith("1: is no trace that we know; expected jsonl"));
  }
  Files files;
  const auto one = files.write("one", kMooncake), two = files.write("two", kSession);
  CHECK_THROWS_WITH(read({one, two}, 16), Catch::Contains("two is of format agent-json and") &&
                                              Catch::Contains("one of mooncake"));
  CHECK_THROWS_WITH(read({one, one}, 16),
                    Catch::Contains("a trace of format mooncake is one file"));
}
