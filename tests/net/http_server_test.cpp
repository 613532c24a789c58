// The server as a whole: binding, draining, many connections.
#include <unistd.h>

#include <fstream>
#include <future>
#include <thread>

#include "tests/net/http_fixture.hpp"

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
