// What calibration asks a server and what it writes; how well it measures is seen on a real one.
#include "net/replay/calibration.hpp"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "net/replay/step_probe.hpp"
#include "tests/support/fake_openai.hpp"

namespace {

using support::FakeExchange;
using support::FakeOpenAi;

const std::string kConfig = std::string(SLUICE_SOURCE_DIR) + "/config";

// Two streams that go on only when both have come as far.
class InStep {
 public:
  void at(int64_t token) {
    std::unique_lock lock(mutex_);
    if (++here_[token] % 2 == 0) return here_cv_.notify_all();
    here_cv_.wait(lock, [&] { return here_[token] % 2 == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable here_cv_;
  std::map<int64_t, int> here_;
};

// A Sluice server, as far as its clients are told, that makes up its answers.
class SmallServer {
 public:
  void operator()(FakeExchange& exchange) {
    const std::string& path = exchange.request().path;
    if (path == "/v1/models") {
      exchange.reply(200, R"({"data":[{"id":"tiny"}]})");
    } else if (path == "/get_server_info") {
      exchange.reply(200, R"({"vocab_size":4352,"context_length":600,"max_running_requests":2,)"
                          R"("chunked_prefill_size":256,"threads":2,"kv_cache_dtype":"f32",)"
                          R"("model_path":")" +
                              kConfig + R"(/models/tiny-k3"})");
    } else if (path == "/metrics") {
      exchange.reply(200, "# HELP sluice:x y\n");
    } else {
      answer(exchange);
    }
  }

 private:
  void answer(FakeExchange& exchange) {
    const auto body = boost::json::parse(exchange.request().body);
    const int64_t tokens = body.at("max_tokens").as_int64();
    // Of those that decode, every first comes alone and the two behind it side by side.
    const bool paired = tokens > 1 && decoding_++ % 3 != 0;
    exchange.begin_stream();
    for (int64_t i = 0; i < tokens; ++i) {
      if (paired) in_step_.at(i);
      std::this_thread::sleep_for(std::chrono::microseconds(500));
      exchange.event(R"({"choices":[{"text":"a","finish_reason":null}]})");
    }
    exchange.event("[DONE]");
    exchange.end_stream();
  }
  InStep in_step_;
  std::atomic<int> decoding_{0};
};

net::CalibrationOptions options_for(const FakeOpenAi& server) {
  net::CalibrationOptions options;
  options.server.url = server.url();
  options.name = "this-machine";
  options.rounds = 2;
  return options;
}

}  // namespace

TEST_CASE("Loads stay within what a server takes", "[replay]") {
  const auto loads = net::probe_loads({600, 2});
  std::vector<std::string> names;
  for (const net::ProbeLoad& load : loads) names.push_back(load.name());
  CHECK(names == std::vector<std::string>{"prompt of 64", "prompt of 128", "prompt of 256",
                                          "prompt of 512", "1 decoding behind 32",
                                          "2 decoding behind 32"});
  CHECK(net::probe_loads({1u << 20, 64}).size() == 14);
}

TEST_CASE("A calibration writes a device file that says how it was found", "[replay]") {
  SmallServer sluice;
  FakeOpenAi server(std::ref(sluice));
  const auto base = runtime::read_device(kConfig + "/devices/cpu-epyc.toml");
  const auto result = net::calibrate(base, options_for(server), nullptr);
  REQUIRE(result.rows.size() == 6);
  for (const auto& row : result.rows) CHECK(row.measured_us > 0);

  const std::string text = net::calibration_file(result);
  CAPTURE(text);
  const auto device = runtime::parse_device(text, "out.toml");
  CHECK(device.name == "this-machine");
  CHECK(device.is_roofline);
  CHECK(device.constant("memory_bytes").value == base.constant("memory_bytes").value);
  CHECK(device.constant("memory_bytes").source == base.constant("memory_bytes").source);
  for (const char* key : {"bytes_per_us", "flops_per_us", "step_us", "layer_us", "token_us"}) {
    CAPTURE(key);
    CHECK(device.constant(key).provenance == runtime::Provenance::kMeasured);
    CHECK(device.constant(key).source.find("tiny, 2 threads, kv f32; 6 loads") !=
          std::string::npos);
  }
  CHECK(text.find("# prompt of 64 ") != std::string::npos);
  CHECK(text.find("# median error ") != std::string::npos);

  // A warm-up and two rounds; no two prompts are alike.
  const auto asked = server.requests("/v1/completions");
  CHECK(asked.size() == 3 * (4 + 1 + 2));
  std::set<std::string> bodies;
  for (const auto& request : asked) bodies.insert(request.body);
  CHECK(bodies.size() == asked.size());
}

TEST_CASE("What cannot be calibrated is refused", "[replay]") {
  SmallServer sluice;
  FakeOpenAi server(std::ref(sluice));
  CHECK_THROWS_WITH(net::calibrate(runtime::read_device(kConfig + "/devices/gb300.toml"),
                                   options_for(server), nullptr),
                    Catch::Contains("roofline"));
  const auto base = runtime::read_device(kConfig + "/devices/cpu-epyc.toml");
  auto options = options_for(server);
  options.model = "/no/such/model";
  CHECK_THROWS_WITH(net::calibrate(base, options, nullptr), Catch::Contains("--model"));
  FakeOpenAi other([&](FakeExchange& exchange) {
    if (exchange.request().path == "/metrics")
      exchange.reply(200, "# HELP vllm:x y\n");
    else
      sluice(exchange);
  });
  CHECK_THROWS_WITH(net::calibrate(base, options_for(other), nullptr),
                    Catch::Contains("no Sluice server"));
  FakeOpenAi failing([&](FakeExchange& exchange) {
    if (exchange.request().path == "/v1/completions")
      exchange.reply(500, "{}");
    else
      sluice(exchange);
  });
  CHECK_THROWS_WITH(net::calibrate(base, options_for(failing), nullptr),
                    Catch::Contains("prompt of 64 failed: status 500"));
}
