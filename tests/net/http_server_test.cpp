// The server as a whole: binding, draining, many connections.
#include <unistd.h>

#include <fstream>
#include <future>
#include <thread>

#include "tests/net/http_fixture.hpp"
#include "tests/support/tokenizer_directory.hpp"

using std::chrono::milliseconds;
using support::completion;
using support::get;
using support::Running;
using support::WireClient;
using support::WireReply;

namespace {

constexpr milliseconds kPatience{20'000};

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized =
    true;  // its allocator keeps what is freed: resident memory says nothing
#else
constexpr bool kSanitized = false;
#endif

size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  size_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// The first call for the tokenizer begins, and waits for go_on.
struct HeldCall {
  explicit HeldCall(Running& running) {
    running.service.before_tokenizer = [this] {
      if (!first.exchange(false)) return;
      begun.set_value();
      go_on.get_future().wait();
    };
  }
  std::promise<void> begun, go_on;
  std::atomic<bool> first{true};
};

}  // namespace

TEST_CASE("a port in use and a host that does not exist are named", "[net]") {
  Running running;
  auto config = support::quick_config();
  config.port = running.port();
  const std::string address = "cannot listen on 127.0.0.1:" + std::to_string(running.port());
  CHECK_THROWS_WITH(net::Server(config, running.service), Catch::Contains(address));
  config.host = "256.1.1.1";
  CHECK_THROWS_AS(net::Server(config, running.service), std::runtime_error);
}

TEST_CASE("a server that never ran, or ran for nobody, just ends", "[net]") {
  support::FakeService service;
  net::Server never(support::quick_config(), service);
  net::Server idle(support::quick_config(), service);
  idle.run_in_background();
  idle.stop(kPatience);
  idle.stop(kPatience);
  CHECK_THROWS(WireClient(idle.port()));
}

TEST_CASE("stopping lets running answers end, refuses new ones, and takes no new client", "[net]") {
  Running running;
  WireClient streaming(running.port()), waiting(running.port());
  CHECK(waiting.ask(get("/health")).status == 200);
  streaming.send(completion(true));
  const auto request = running.service.next();
  request.sink(actors::Accepted{{{1}}});
  streaming.read_head();

  auto stopped = std::async(std::launch::async, [&] { running.server.stop(kPatience); });
  WireReply health = waiting.ask(get("/health"));  // an open connection: it tells the load balancer
  while (health.status == 200) health = waiting.ask(get("/health"));
  CHECK(health.status == 503);
  CHECK(waiting.at_end());  // that answer said Connection: close

  for (auto& event : support::whole_answer({"to the end"})) request.sink(event);
  CHECK_THAT(streaming.read_to_end(),
             Catch::Contains("to the end") && Catch::EndsWith("[DONE]\n\n\r\n0\r\n\r\n"));
  stopped.get();
  CHECK_THROWS(WireClient(running.port()));
  CHECK_FALSE(running.service.was_aborted(request.id));
}

TEST_CASE("answers that do not end in time are aborted and their clients told", "[net]") {
  Running running;
  WireClient streaming(running.port()), whole(running.port()), idle(running.port()),
      partial(running.port());
  streaming.send(completion(true));
  const auto first = running.service.next();
  first.sink(actors::Accepted{{{1}}});
  streaming.read_head();
  whole.send(completion(false));
  const auto second = running.service.next();
  partial.send("POST /v1/comp");

  running.server.stop(milliseconds(50));
  CHECK(running.service.was_aborted(first.id));
  CHECK(running.service.was_aborted(second.id));
  CHECK_THAT(streaming.read_to_end(),
             Catch::Contains(R"(data: {"error":)") && Catch::Contains("shutting down"));
  CHECK(whole.read_reply().status == 503);
  CHECK(idle.at_end());
  CHECK(partial.at_end());
  CHECK_FALSE(first.sink(actors::Done{}));  // the engine may still talk: nobody is hurt
}

TEST_CASE("a client that takes nothing does not hold up the stop", "[net]") {
  auto config = support::quick_config();
  config.limits.send_buffer_bytes = 4096;
  Running running(config);
  WireClient stuck(running.port(), 4096);
  stuck.send(completion(true));
  const auto request = running.service.next();
  for (auto& event : support::whole_answer({std::string(8 << 20, 'x')})) request.sink(event);
  stuck.read_head();
  running.server.stop(milliseconds(0));
  CHECK_FALSE(request.sink(actors::Done{}));
}

TEST_CASE("stopping drops the slow calls that wait, tells their clients, and keeps its time",
          "[net]") {
  Running running;
  HeldCall held(running);
  const std::string slow = support::post("/detokenize", R"({"tokens":[1]})");
  WireClient running_call(running.port());
  running_call.send(slow);
  held.begun.get_future().wait();
  WireClient waits(running.port()), waits_too(running.port());
  for (WireClient* client : {&waits, &waits_too}) CHECK(client->ask(get("/health")).status == 200);
  waits.send(slow);
  waits_too.send(support::post("/v1/completions", std::string(100'000, ' ')));

  auto stopped = std::async(std::launch::async, [&] { running.server.stop(milliseconds(200)); });
  std::vector<std::string> replies;
  for (WireClient* client : {&waits, &waits_too}) replies.push_back(client->read_to_end());
  held.go_on.set_value();
  stopped.get();
  for (const std::string& reply : replies) {
    CHECK_THAT(reply, Catch::StartsWith("HTTP/1.1 503") && Catch::Contains("draining"));
  }
  running_call.read_to_end();  // its answer or, on a slow machine, only the close
}

TEST_CASE("a tokenization ends without a result when its client leaves or the server stops",
          "[net]") {
  Running running;
  running.service.facts.context_length = 1 << 30;
  running.service.words = support::byte_tokenizer();
  std::string words;  // many: the end of waiting is seen while they are encoded
  for (int i = 0; i < 200'000; ++i) words += " word";
  const std::string slow = support::post("/tokenize", R"({"prompt":")" + words + "\"}");
  for (const bool stop : {false, true}) {
    CAPTURE(stop);
    HeldCall held(running);
    WireClient client(running.port()), other(running.port());
    CHECK(other.ask(get("/health")).status == 200);
    client.send(slow);
    held.begun.get_future().wait();
    std::future<void> stopped;
    if (stop) {
      stopped = std::async(std::launch::async, [&] { running.server.stop(milliseconds(0)); });
      other.read_to_end();  // sockets are stopped in one go
    } else {
      client.reset();  // what the server reads after it, it has answered after it
      for (int i = 0; i < 2; ++i) CHECK(other.ask(get("/health")).status == 200);
    }
    held.go_on.set_value();
    if (stop) {
      stopped.get();
      CHECK_THAT(client.read_to_end(), !Catch::Contains("200 OK"));
      continue;
    }
    CHECK(other.ask(slow).status == 200);  // served behind the one that nobody waits for
    CHECK_THAT(other.ask(get("/metrics")).body, Catch::Contains(R"(code="5xx"} 1)"));
  }
}

TEST_CASE("a stop takes its drain and half a second, whoever waits", "[net]") {
  auto config = support::quick_config();
  config.limits.send_buffer_bytes = 4096;
  Running running(config);
  WireClient stuck(running.port(), 4096), unsent(running.port()), whole(running.port());
  stuck.send(completion(true));
  const auto request = running.service.next();
  for (auto& event : support::whole_answer({std::string(8 << 20, 'x')})) request.sink(event);
  unsent.send(completion().substr(0, 100));
  whole.send(completion());
  running.service.next();
  const auto begin = std::chrono::steady_clock::now();
  running.server.stop(milliseconds(200));
  CHECK(std::chrono::steady_clock::now() - begin < milliseconds(200 + 500));
}

TEST_CASE("a server that never began to run can be stopped", "[net]") {
  support::FakeService service;
  net::Server never(support::quick_config(), service);
  never.stop(kPatience);
}

TEST_CASE("what a client sent is freed once it is understood", "[net]") {
  if (kSanitized) return;
  constexpr size_t kBody = size_t{8} << 20;
  Running running;
  std::string body = R"({"prompt":[1,2,3],"max_tokens":8)";
  body.append(kBody - body.size() - 1, ' ').push_back('}');
  const std::string request = support::post("/v1/completions", body);
  std::vector<std::unique_ptr<WireClient>> clients;
  const size_t before = resident_bytes();
  for (int i = 0; i < 16; ++i) {
    clients.push_back(std::make_unique<WireClient>(running.port()));
    REQUIRE(clients.back()->send(request));
    running.service.next();  // its answer never comes
  }
  CHECK(resident_bytes() < before + 8 * kBody);
}

TEST_CASE("a client that pipelines for ever costs no memory", "[net]") {
  if (kSanitized) return;
  constexpr size_t kRequests = 3000;
  Running running;
  WireClient client(running.port());
  std::string request = get("/health", "A: \r\n");
  request.insert(request.find("A: ") + 3, 16'001 - request.size(), 'a');  // no multiple of a read
  std::thread sender([&] {
    std::string all;
    for (size_t i = 0; i < 100; ++i) all += request;
    for (size_t i = 0; i < kRequests / 100; ++i) client.send(all);
  });
  const size_t before = resident_bytes();
  size_t answered = 0;
  for (size_t i = 0; i < kRequests; ++i) answered += client.read_reply().status == 200 ? 1 : 0;
  sender.join();
  CHECK(answered == kRequests);
  CHECK(resident_bytes() < before + (size_t{16} << 20));
}

TEST_CASE("several io threads serve many clients at once", "[net]") {
  auto config = support::quick_config();
  config.io_threads = 2;
  Running running(config);
  running.service.answer_at_once(support::whole_answer({"a", "b", "c"}));
  std::vector<std::thread> clients;
  std::atomic<int> good{0};
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      WireClient client(running.port());
      for (int i = 0; i < 20; ++i) {
        const WireReply reply = client.ask(completion((i + c) % 2 == 0));
        if (reply.status == 200 && reply.body.find("a") != std::string::npos) ++good;
      }
    });
  }
  for (auto& client : clients) client.join();
  CHECK(good == 160);
}

TEST_CASE("an idle kept-alive connection costs at most 64 KiB", "[net]") {
  if (kSanitized) return;
  constexpr size_t kConnections = 400;
  Running running;
  std::vector<std::unique_ptr<WireClient>> clients;
  const std::string large(200'000, ' ');  // a large request must not leave its buffers behind
  WireClient(running.port()).ask(support::post("/tokenize", large));
  const size_t before = resident_bytes();
  for (size_t i = 0; i < kConnections; ++i) {
    clients.push_back(std::make_unique<WireClient>(running.port()));
    REQUIRE(clients.back()->ask(get("/v1/models")).status == 200);
    if (i % 10 == 0) REQUIRE(clients.back()->ask(support::post("/tokenize", large)).status == 400);
  }
  const size_t each = (resident_bytes() - std::min(before, resident_bytes())) / kConnections;
  WARN("an idle connection costs " << each
                                   << " bytes of resident memory, its test client included");
  CHECK(each <= 64 * 1024);
}
