// Generations over the wire: framing, errors before and after the status, and clients that leave or
// read too slowly.
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <thread>

#include "net/token_queue.hpp"
#include "runtime/trace.hpp"
#include "tests/net/http_fixture.hpp"

using support::completion;
using support::get;
using support::post;
using support::Running;
using support::WireClient;
using support::WireReply;

namespace json = boost::json;

namespace {

actors::Delta text_delta(const std::string& text) {
  actors::Delta delta;
  delta.text = text;
  delta.token_ids = {7};
  return delta;
}

actors::Failed failed(kernels::ErrorCode code, const std::string& message) {
  return {{code, message, ""}};
}

// The text of all `data:` lines of a streamed completion; checks the framing on the way.
std::string streamed_text(const std::string& body) {
  std::string text;
  std::istringstream lines(body);
  bool done = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    REQUIRE_THAT(line, Catch::StartsWith("data: "));
    REQUIRE_FALSE(done);
    const std::string payload = line.substr(6);
    done = payload == "[DONE]";
    if (done) continue;
    const json::value chunk = json::parse(payload);
    for (const auto& choice : chunk.at("choices").as_array())
      text += choice.at("text").as_string().c_str();
  }
  CHECK(done);
  return text;
}

}  // namespace

TEST_CASE("a stream arrives piece by piece as server-sent events", "[net]") {
  Running running;
  WireClient client(running.port());
  client.send(completion(true));
  const auto request = running.service.next();
  CHECK(request.request.max_tokens == 8);
  REQUIRE(request.sink(actors::Accepted{{{1, 2, 3}}}));
  const WireReply head = client.read_head();  // before any token
  CHECK(head.status == 200);
  CHECK_THAT(head.header("Content-Type"), Catch::StartsWith("text/event-stream"));
  CHECK(head.header("Cache-Control") == "no-cache");
  CHECK(head.header("x-request-id") == request.request.rid);
  std::string body;
  for (const char* piece : {"he", "ll", "o"}) {
    REQUIRE(request.sink(text_delta(piece)));
    while (body.find(piece) == std::string::npos)
      body += client.read_chunk();  // each before the next exists
    CHECK_THAT(body, Catch::EndsWith("\n\n"));
  }
  request.sink(actors::ChoiceDone{});
  request.sink(actors::Done{3, 0, 3});
  for (std::string chunk = client.read_chunk(); !chunk.empty(); chunk = client.read_chunk())
    body += chunk;
  CHECK(streamed_text(body) == "hello");
  CHECK(client.ask(get("/health")).status == 200);  // the connection lives on
  CHECK_FALSE(running.service.was_aborted(request.id));
}

TEST_CASE("streamed and whole answers carry the same text, in bursts of any size", "[net]") {
  Running running;
  std::vector<std::string> pieces;
  std::string text;
  for (int i = 0; i < 500; ++i) text += pieces.emplace_back("piece " + std::to_string(i) + "\n");
  running.service.answer_at_once(support::whole_answer(pieces));
  WireClient client(running.port());
  CHECK(streamed_text(client.ask(completion(true)).body) == text);
  const WireReply whole = client.ask(completion(false));
  CHECK(whole.header("Content-Type") == "application/json");
  CHECK(json::parse(whole.body).at("choices").at(0).at("text") == json::string(text));
}

TEST_CASE("an error before the first token is a proper status, streamed or not", "[net]") {
  Running running;
  WireClient client(running.port());
  struct Case {
    kernels::ErrorCode code;
    int status;
  };
  for (const Case c :
       {Case{kernels::ErrorCode::kInvalid, 400}, Case{kernels::ErrorCode::kFull, 429},
        Case{kernels::ErrorCode::kTimeout, 408}, Case{kernels::ErrorCode::kUnavailable, 503},
        Case{kernels::ErrorCode::kInternal, 500}}) {
    CAPTURE(c.status);
    for (const bool stream : {false, true}) {
      client.send(completion(stream));
      running.service.next().sink(failed(c.code, "because"));
      const WireReply reply = client.read_reply();
      CHECK(reply.status == c.status);
      CHECK(reply.header("Content-Type") == "application/json");
      CHECK(json::parse(reply.body).at("error").at("message") == "because");
      CHECK(reply.header("Retry-After").empty() == (c.status != 429 && c.status != 503));
      CHECK(reply.header("retry-after-ms").empty() == (c.status != 429 && c.status != 503));
      const bool hopeless = c.status == 408 || c.status == 500;
      CHECK(reply.header("x-should-retry") == (hopeless ? "false" : ""));

      running.service.refuse(kernels::Error{c.code, "at the door", ""});
      CHECK(client.ask(completion(stream)).status == c.status);
      running.service.refuse(std::nullopt);
    }
  }
  CHECK(client.ask(post("/v1/completions", "{")).status == 400);
  CHECK(client.ask(post("/v1/chat/completions", "")).status == 400);
}

TEST_CASE("an error after the first token is the stream's last event", "[net]") {
  Running running;
  WireClient client(running.port());
  client.send(completion(true));
  const auto request = running.service.next();
  request.sink(actors::Accepted{{{1}}});
  request.sink(text_delta("he"));
  std::string body;
  client.read_head();
  while (body.find("he") == std::string::npos) body += client.read_chunk();
  request.sink(failed(kernels::ErrorCode::kInternal, "the logits are not finite"));
  body.clear();
  for (std::string chunk = client.read_chunk(); !chunk.empty(); chunk = client.read_chunk())
    body += chunk;
  CHECK_THAT(body, Catch::StartsWith(R"(data: {"error":{"message":"the logits are not finite")"));
  CHECK_THAT(body, Catch::EndsWith("data: [DONE]\n\n"));
  CHECK(client.at_end());
}

TEST_CASE("a client that leaves has its request aborted at once, whatever the phase and the way",
          "[net]") {
  Running running;
  enum class Phase { kQueued, kAccepted, kStreaming };
  for (const bool stream : {false, true}) {
    for (const Phase phase : {Phase::kQueued, Phase::kAccepted, Phase::kStreaming}) {
      for (const bool reset : {false, true}) {
        CAPTURE(stream, static_cast<int>(phase), reset);
        WireClient client(running.port());
        client.send(completion(stream));
        const auto request = running.service.next();
        if (phase != Phase::kQueued) REQUIRE(request.sink(actors::Accepted{{{1}}}));
        if (phase == Phase::kStreaming) REQUIRE(request.sink(text_delta("hello")));
        if (phase != Phase::kQueued && stream) client.read_head();
        reset ? client.reset() : client.close();
        running.service.wait_aborted(
            request.id);  // no token had to be written for the server to notice
        for (int i = 0; i < 2; ++i) request.sink(text_delta("late"));  // harmless
      }
    }
  }
  CHECK(WireClient(running.port()).ask(get("/health")).status == 200);
}

TEST_CASE("a client that leaves with requests pipelined behind has its request aborted", "[net]") {
  Running running;
  WireClient client(running.port());
  client.send(completion(true) + get("/health") + get("/health"));
  const auto request = running.service.next();
  client.close();
  running.service.wait_aborted(request.id);
}

TEST_CASE("a sink is told when its client is gone", "[net]") {
  Running running;
  WireClient client(running.port());
  client.send(completion(true));
  const auto request = running.service.next();
  client.close();
  running.service.wait_aborted(request.id);
  bool taken = true;
  for (int i = 0; taken && i < 100000; ++i)
    taken = request.sink(text_delta("late"));  // ends when the queue closes
  CHECK_FALSE(taken);
}

TEST_CASE("a client that reads too slowly overflows its queue and nobody else's", "[net]") {
  auto config = support::quick_config();
  config.limits.queue_bytes = 100'000;
  config.limits.send_buffer_bytes = 4096;
  Running running(config);
  WireClient slow(running.port(), 4096);
  slow.send(completion(true));
  const auto stuck = running.service.next();
  stuck.sink(actors::Accepted{{{1}}});
  const std::string large(20000, 'x');
  int events = 0;
  while (stuck.sink(text_delta(large))) REQUIRE(++events < 10000);

  WireClient brisk(running.port());
  brisk.send(completion(true));
  const auto request = running.service.next();
  for (auto& event : support::whole_answer({"fine"})) REQUIRE(request.sink(event));
  CHECK(streamed_text(brisk.read_reply().body) == "fine");

  const std::string rest =
      slow.read_to_end();  // reads on at last: is told, and the connection ends
  CHECK_THAT(rest, Catch::Contains("reads too slowly"));
  running.service.wait_aborted(stuck.id);
}

TEST_CASE("a write that nobody takes ends the request after the write time-out", "[net]") {
  auto config = support::quick_config();
  config.limits.send_buffer_bytes = 4096;
  config.limits.write_timeout = std::chrono::milliseconds(60);
  Running running(config);
  WireClient slow(running.port(), 4096);
  slow.send(completion(true));
  const auto request = running.service.next();
  request.sink(actors::Accepted{{{1}}});
  for (int i = 0; i < 20; ++i) request.sink(text_delta(std::string(500000, 'x')));
  running.service.wait_aborted(request.id);
}

TEST_CASE("the queue wakes once per burst, refuses past its bound and after closing", "[net]") {
  int wakes = 0;
  net::TokenQueue queue(1000, [&] { ++wakes; });
  std::vector<actors::SinkEvent> events;
  CHECK(queue.push(actors::Accepted{{std::vector<runtime::TokenId>(10'000, 1)}}));
  CHECK(queue.push(text_delta("a")));  // a prompt does not count
  CHECK(wakes == 1);
  queue.drain(events);
  CHECK(events.size() == 2);
  CHECK(queue.push(text_delta(std::string(5000, 'b'))));  // one piece of any size goes through
  CHECK(wakes == 2);
  CHECK_FALSE(queue.overflowed());
  CHECK(queue.push(actors::ChoiceDone{}));  // an end is never too much
  CHECK_FALSE(queue.push(text_delta("d")));
  CHECK(queue.overflowed());
  CHECK(wakes == 3);
  queue.drain(events);
  CHECK(events.size() == 2);  // what came before is not lost
  CHECK_FALSE(queue.push(text_delta("e")));
  net::TokenQueue closed(1000, [&] { ++wakes; });
  closed.close();
  CHECK_FALSE(closed.push(text_delta("f")));
  CHECK(wakes == 3);
}

TEST_CASE("output that waits is joined choice by choice, in order", "[net]") {
  net::TokenQueue queue(1 << 20, [] {});
  std::vector<actors::SinkEvent> events;
  const auto piece = [](uint32_t choice, const std::string& text, int32_t id) {
    actors::Delta delta = text_delta(text);
    delta.choice = choice;
    delta.token_ids = {id};
    delta.chat = {runtime::ChatDelta{runtime::ChatDelta::Kind::kContent, text, 0, ""}};
    delta.logprobs.resize(1);
    delta.logprobs[0].chosen.token = id;
    return delta;
  };
  for (int round = 0; round < 2; ++round) {  // a drained Delta is not joined to
    REQUIRE(queue.push(piece(1, "a", 1)));
    REQUIRE(queue.push(piece(0, "x", 2)));
    REQUIRE(queue.push(piece(1, "b", 3)));
    REQUIRE(queue.push(actors::ChoiceDone{}));  // of choice 0
    REQUIRE(queue.push(piece(1, "c", 4)));
    queue.drain(events);
    REQUIRE(events.size() == 3);
    const auto& joined = std::get<actors::Delta>(events[0]);
    CHECK(joined.text == "abc");
    CHECK(joined.token_ids == std::vector<runtime::TokenId>{1, 3, 4});
    CHECK(joined.chat.size() == 3);
    REQUIRE(joined.logprobs.size() == 3);
    CHECK(joined.logprobs[2].chosen.token == 4);
    CHECK(std::get<actors::Delta>(events[1]).text == "x");
    CHECK(std::holds_alternative<actors::ChoiceDone>(events[2]));
  }
}

TEST_CASE("a client that reads slowly but in time gets everything, however many tokens", "[net]") {
  auto config = support::quick_config();
  config.limits.send_buffer_bytes = 4096;
  Running running(config);
  WireClient slow(running.port(), 4096);
  slow.send(completion(true));
  const auto request = running.service.next();
  request.sink(actors::Accepted{{{1}}});
  for (int i = 0; i < 20000; ++i) REQUIRE(request.sink(text_delta("token ")));
  request.sink(actors::ChoiceDone{});
  request.sink(actors::Done{1, 0, 20000});
  CHECK(streamed_text(slow.read_reply().body).size() == 20000 * 6);
}

TEST_CASE("a client that ends its input still gets a whole answer, and none of a stream", "[net]") {
  Running running;
  WireClient whole(running.port());
  whole.send(completion(false));
  auto request = running.service.next();
  whole.shut_down_sending();
  CHECK(whole.read_head().status == 102);  // "are you there?": a closed client would reset
  for (auto& event : support::whole_answer({"all of it"})) REQUIRE(request.sink(event));
  const WireReply reply = whole.read_reply();
  CHECK(reply.status == 200);
  CHECK_THAT(reply.body, Catch::Contains("all of it"));
  CHECK(whole.at_end());
  CHECK_FALSE(running.service.was_aborted(request.id));

  WireClient old(running.port());  // HTTP/1.0 knows no interim answers
  const std::string body = R"({"prompt":[1]})";
  old.send("POST /v1/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body);
  request = running.service.next();
  old.shut_down_sending();
  for (auto& event : support::whole_answer({"old"})) REQUIRE(request.sink(event));
  CHECK(old.read_reply().status == 200);

  WireClient stream(running.port());
  stream.send(completion(true));
  request = running.service.next();
  stream.shut_down_sending();
  running.service.wait_aborted(request.id);
}

TEST_CASE("log-probabilities of a long prompt come whole, from the helper thread", "[net]") {
  Running running;
  WireClient client(running.port());
  client.send(
      post("/v1/completions", R"({"prompt":[1,2],"max_tokens":1,"echo":true,"logprobs":0})"));
  const auto request = running.service.next();
  const size_t length = 2000;
  request.sink(actors::Accepted{{std::vector<runtime::TokenId>(length, 1)}});
  actors::Delta delta = text_delta("x");
  delta.prompt_logprobs.resize(length - 1);
  delta.logprobs.resize(1);
  request.sink(delta);
  request.sink(actors::ChoiceDone{});
  request.sink(actors::Done{2000, 0, 1});
  const json::value reply = json::parse(client.read_reply().body);
  const auto& logprobs = reply.at("choices").at(0).at("logprobs").at("token_logprobs").as_array();
  CHECK(logprobs.size() == length + 1);
}

TEST_CASE("a traced request passes the hops of net/ in order", "[net]") {
  Running running;
  std::atomic<uint64_t> ticks{0}, parsing{0};
  runtime::Trace::global().enable(64, [&] { return ++ticks; });
  running.service.before_tokenizer = [&] { parsing = ++ticks; };
  WireClient client(running.port());
  client.send(completion(true));
  const auto request = running.service.next();
  for (auto& event : support::whole_answer({"a", "b"})) REQUIRE(request.sink(event));
  CHECK(streamed_text(client.read_reply().body) == "ab");
  CHECK(runtime::Trace::global().hops(request.id) ==
        std::vector<std::string>{"net.read_request", "net.parse", "net.push"});
  const auto records = runtime::Trace::global().records(request.id);
  CHECK(records[0].time_ns < parsing);  // the body was complete,
  CHECK(records[1].time_ns > parsing);  // and then the request
  runtime::Trace::global().disable();
}
