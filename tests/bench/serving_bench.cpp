// What the server costs around the arithmetic: start-up, idle memory, process CPU and worker idle
// time per step with 64 streaming rows on a null device, and the memory of idle keep-alive
// connections. Prints the measured figure beside its goal.
//   bench-serving [weights directory]
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "server_cost.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/server_process.hpp"

namespace {

using bench::cpu_seconds;
using bench::load_average;
using support::HttpClient;
using support::ServerProcess;

struct Metrics {
  std::string text;
  double value(const std::string& name) const {
    size_t at = text.find("\n" + name);
    if (at == std::string::npos) {
      std::fprintf(stderr, "the server has no metric %s\n", name.c_str());
      std::exit(1);
    }
    at = text.find_last_of(' ', text.find('\n', at + 1));
    return std::strtod(text.c_str() + at + 1, nullptr);
  }
  // Upper bound of the histogram bucket that holds the median of what came after `before`.
  std::string median_bucket(const Metrics& before, const std::string& name) const {
    const double total = value(name + "_count") - before.value(name + "_count");
    size_t at = 0;
    while ((at = text.find("\n" + name + "_bucket", at)) != std::string::npos) {
      const size_t end = text.find('\n', ++at);
      const std::string line = text.substr(at, end - at);
      const std::string series = line.substr(0, line.rfind(' '));
      if (value(series) - before.value(series) >= total / 2) {
        const size_t le = line.find("le=\"") + 4;
        return line.substr(le, line.find('"', le) - le);
      }
    }
    return "?";
  }
};

Metrics read_metrics(uint16_t port) {
  return {"\n" + HttpClient(port).request("GET", "/metrics").body};
}

void bench_start(const std::string& model) {
  double best = 1e9;
  long rss_kib = 0;
  for (int run = 0; run < 5; ++run) {
    ServerProcess server({"--model", model});
    best = std::min(best, server.ready_after_s());
    rss_kib = server.rss_kib();
  }
  std::printf("start to ready         %8.3f s    (goal 1; best of 5)\n", best);
  std::printf("idle RSS               %8.1f MB   (goal 250)\n",
              static_cast<double>(rss_kib) / 1024);
}

// Reads and drops whatever the streams send for the given time.
void drain(std::vector<std::unique_ptr<HttpClient>>& clients, std::chrono::milliseconds duration) {
  std::vector<pollfd> polls;
  for (const auto& client : clients) polls.push_back({client->descriptor(), POLLIN, 0});
  std::vector<char> sink(1 << 16);
  const auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end) {
    ::poll(polls.data(), polls.size(), 10);
    for (const auto& poll : polls) {
      if ((poll.revents & POLLIN) != 0 &&
          ::recv(poll.fd, sink.data(), sink.size(), MSG_DONTWAIT) == 0) {
        std::fprintf(stderr, "a stream ended early\n");
        std::exit(1);
      }
    }
  }
}

void bench_null_device(const std::string& model) {
  ServerProcess server({"--model", model, "--device", "null", "--memory-gb", "1"});
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 64; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server.port()));
    clients.back()->send(HttpClient::format(
        "POST", "/v1/completions",
        R"({"prompt":[1,2,3],"stream":true,"ignore_eos":true,"max_tokens":200000})"));
  }
  drain(clients, std::chrono::seconds(1));
  const Metrics before = read_metrics(server.port());
  const double cpu_before = cpu_seconds(server.pid());
  const auto start = std::chrono::steady_clock::now();
  drain(clients, std::chrono::seconds(8));
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double cpu = cpu_seconds(server.pid()) - cpu_before;
  const Metrics after = read_metrics(server.port());
  const double steps = after.value("sluice:steps_total") - before.value("sluice:steps_total");
  const double tokens = after.value("sluice:generation_tokens_total") -
                        before.value("sluice:generation_tokens_total");
  std::printf("null device, 64 streams: %.0f steps/s, %.1f rows a step\n", steps / wall,
              tokens / steps);
  std::printf("  process CPU per step %8.3f ms   (goal 1)\n", 1e3 * cpu / steps);
  std::printf("  worker idle gap p50  <= %s s (goal 1.5e-4)\n",
              after.median_bucket(before, "sluice:worker_gap_seconds").c_str());
}

void bench_idle_connections(const std::string& model) {
  constexpr int kConnections = 2000;
  ServerProcess server({"--model", model});
  HttpClient(server.port()).request("GET", "/health");
  const long before = server.rss_kib();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < kConnections; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server.port()));
    if (clients.back()->request("GET", "/health").status != 200) std::exit(1);
  }
  const long after = server.rss_kib();
  std::printf("idle connection RSS    %8.1f KB   (goal 64; %d keep-alive connections)\n",
              static_cast<double>(after - before) / kConnections, kConnections);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string model =
      argc > 1 ? argv[1] : std::string(SLUICE_SOURCE_DIR) + "/config/models/tiny-k3";
  std::printf("load average %.2f\n", load_average());
  bench_start(model);
  bench_null_device(model);
  bench_idle_connections(model);
  std::printf("load average %.2f\n", load_average());
}
