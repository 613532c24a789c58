// What prefix caching costs where nothing is ever reused: CPU time per token of two servers, one
// with and one without, on the same prompts of random tokens; interleaved pairs, the median of
// their ratios.
//   bench-prefix_cache [weights directory [pairs]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "server_cost.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/server_process.hpp"

namespace {

using support::HttpClient;
using support::ServerProcess;

constexpr int kStreams = 8, kPromptTokens = 700, kOutputTokens = 100, kVocabulary = 256;

std::vector<std::string> random_requests(std::mt19937_64& rng) {
  std::vector<std::string> bodies;
  for (int i = 0; i < kStreams; ++i) {
    std::string body = "{\"prompt\":[";
    for (int t = 0; t < kPromptTokens; ++t)
      body += (t == 0 ? "" : ",") + std::to_string(rng() % kVocabulary);
    body += "],\"ignore_eos\":true,\"max_tokens\":" + std::to_string(kOutputTokens) + "}";
    bodies.push_back(std::move(body));
  }
  return bodies;
}

// CPU seconds per token of all the requests at once.
double cost(const ServerProcess& server, const std::vector<std::string>& bodies) {
  const double before = bench::cpu_seconds(server.pid());
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (const std::string& body : bodies) {
    clients.push_back(std::make_unique<HttpClient>(server.port(), 120));
    clients.back()->send(HttpClient::format("POST", "/v1/completions", body));
  }
  for (const auto& client : clients) {
    const auto reply = client->read_reply();
    if (reply.status != 200) {
      std::fprintf(stderr, "the server answered %d: %s\n", reply.status, reply.body.c_str());
      std::exit(1);
    }
  }
  const double tokens = kStreams * (kPromptTokens + kOutputTokens);
  return (bench::cpu_seconds(server.pid()) - before) / tokens;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string model =
      argc > 1 ? argv[1] : std::string(SLUICE_SOURCE_DIR) + "/config/models/tiny-k3";
  const int pairs = argc > 2 ? std::max(1, std::atoi(argv[2])) : 10;
  std::printf("load average %.2f\n", bench::load_average());
  const auto arguments = [&](const char* cache) {  // one thread: two would spin for each other
    return std::vector<std::string>{"--model",     model, "--memory-gb",    "0.5",
                                    "--threads", "1",   "--prefix-cache", cache};
  };
  ServerProcess with(arguments("on"));
  ServerProcess without(arguments("off"));
  std::mt19937_64 rng(1);
  const auto warm_up = random_requests(rng);
  cost(with, warm_up);
  cost(without, warm_up);
  std::vector<double> ratios;
  for (int pair = 0; pair < pairs; ++pair) {
    const auto bodies = random_requests(rng);
    double on = 0, off = 0;
    if (pair % 2 == 0) on = cost(with, bodies);
    off = cost(without, bodies);
    if (pair % 2 == 1) on = cost(with, bodies);
    ratios.push_back(on / off);
    std::printf("pair %2d: %7.1f us a token with, %7.1f without, ratio %.4f\n", pair, 1e6 * on,
                1e6 * off, on / off);
  }
  std::sort(ratios.begin(), ratios.end());
  const size_t half = ratios.size() / 2;
  const double median =
      ratios.size() % 2 == 1 ? ratios[half] : (ratios[half - 1] + ratios[half]) / 2;
  std::printf("median ratio %.4f (goal 1.03)\nload average %.2f\n", median,
              bench::load_average());
}
