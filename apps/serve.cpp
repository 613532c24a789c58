// sluice-serve: flags and TOML into settings, then the engine, then HTTP, until a signal asks for
// the end.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/system.hpp"
#include "net/server.hpp"
#include "runtime/chat.hpp"

namespace {

using actors::ServicePhase;

// From the signal to the end of the process: at most 10 s, whatever runs or hangs.
constexpr std::chrono::milliseconds kDrainTime{7500};  // for running answers
constexpr std::chrono::milliseconds kExitTime{9500};   // then the process ends as it is

void add_http_flags(CLI::App& app, net::ServerConfig& http) {
  const std::string group = "HTTP";
  app.add_option("--host", http.host, "Address to listen on")->capture_default_str()->group(group);
  app.add_option("--port", http.port, "TCP port; 0 = any free one")
      ->capture_default_str()
      ->group(group);
  app.add_option("--api-key", http.api_key, "Key clients must send as a bearer token")
      ->group(group);
}

void add_engine_flags(CLI::App& app, runtime::EngineConfig& engine) {
  const std::string model = "Model";
  app.add_option("--model", engine.model, "Weights directory (Hugging Face layout)")
      ->required()
      ->group(model);
  app.add_option("--default-reasoning-effort", engine.default_reasoning_effort,
                 "Thinking effort of requests that name none")
      ->check(CLI::IsMember(
          std::vector<std::string>(runtime::kEfforts.begin(), runtime::kEfforts.end())))
      ->capture_default_str()
      ->group(model);

  const std::string compute = "Compute";
  app.add_option("--device", engine.device,
                 "cpu, cuda[:N], or null (no arithmetic: measures the rest)")
      ->capture_default_str()
      ->group(compute);
  app.add_option("--threads", engine.threads, "Worker threads; 0 = all cores")
      ->capture_default_str()
      ->group(compute);

  const std::string memory = "Memory";
  app.add_option("--memory-gb", engine.memory_gb, "GiB for recurrent states and KV pages together")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(memory);
  app.add_option("--state-share", engine.state_share, "Part of that memory for states")
      ->check(CLI::Range(0.01, 0.99))
      ->capture_default_str()
      ->group(memory);
  app.add_option("--kv-dtype", engine.kv_dtype, "f32, or bf16 (lossy)")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str()
      ->group(memory);
  app.add_option("--page-tokens", engine.page_tokens, "Positions of one KV page, a power of two")
      ->capture_default_str()
      ->group(memory);

  const std::string scheduling = "Scheduling";
  app.add_option("--context-length", engine.context_length,
                 "Prompt and output tokens of one sequence; 0 = what model and memory allow")
      ->capture_default_str()
      ->group(scheduling);
  app.add_option("--max-running-requests", engine.max_running_requests,
                 "Choices (prompts times n) that run at once, each in a state slot")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(scheduling);
  app.add_option("--chunk-tokens", engine.chunk_tokens, "Token rows of one step, at least 64")
      ->capture_default_str()
      ->group(scheduling);
  app.add_option("--max-queue", engine.max_queue,
                 "Choices that may wait beyond those; a request that does not fit is answered 429")
      ->capture_default_str()
      ->group(scheduling);
}

// The signals that end the server are taken by the main thread alone, so they are blocked before
// any other thread exists.
sigset_t block_end_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

void print_ready(const net::Server& server, const net::ServerConfig& http,
                 const runtime::EngineConfig& engine) {
  const std::string url = "http://" + http.host + ":" + std::to_string(server.port());
  std::printf(
      "sluice-serve is ready: %s on %s\n"
      "Try:\n"
      "  curl -N %s/v1/chat/completions -H 'Content-Type: application/json' \\\n"
      "    -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}], \"stream\": true, "
      "\"max_tokens\": 64}'\n",
      engine.model.c_str(), url.c_str(), url.c_str());
  std::fflush(stdout);
}

// A step that takes long, or a connection that does not close, cannot hold the process.
void exit_after(std::chrono::milliseconds time, int code) {
  const auto end = std::chrono::steady_clock::now() + time;
  std::thread([end, code] {
    std::this_thread::sleep_until(end);
    std::fprintf(stderr, "sluice-serve: something still runs, leaving it\n");
    std::_Exit(code);
  }).detach();
}

int serve(const net::ServerConfig& http, const runtime::EngineConfig& engine,
          const sigset_t& signals) {
  std::atomic<bool> lost{false};
  actors::SystemOptions options;
  options.on_failure = [&lost](const std::string& reason) {
    std::fprintf(stderr, "sluice-serve: the engine cannot go on: %s\n", reason.c_str());
    lost = true;
    kill(getpid(), SIGTERM);  // wakes the main thread
  };
  const auto system = actors::System::start(engine, options);
  net::Server server(http, *system);
  server.run_in_background();  // /health answers 503 while the weights load
  std::thread loading([&] {    // so that a signal is seen while they do
    try {
      system->wait_ready();
      print_ready(server, http, engine);
    } catch (const std::exception& error) {
      if (system->phase().kind == ServicePhase::Kind::kFailed) options.on_failure(error.what());
    }
  });
  int received = 0;
  sigwait(&signals, &received);
  exit_after(kExitTime, lost ? 1 : 0);
  if (!lost) {
    std::fprintf(stderr, "sluice-serve: %s, finishing what runs\n",
                 received == SIGTERM ? "SIGTERM" : "SIGINT");
  }
  if (system->phase().kind == ServicePhase::Kind::kStarting) {
    server.stop(std::chrono::milliseconds{0});
    std::_Exit(0);  // a load cannot be interrupted, and nobody waits for it; stdout is flushed
  }
  server.stop(kDrainTime);
  system->drain(std::chrono::milliseconds(200));
  loading.join();
  return lost ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Sluice: an OpenAI-compatible server for Kimi-K3-class hybrid models",
               "sluice-serve");
  net::ServerConfig http;
  runtime::EngineConfig engine;
  app.set_config("--config", "", "TOML file of settings; flags win");
  app.allow_config_extras(CLI::config_extras_mode::error);
  add_engine_flags(app, engine);
  add_http_flags(app, http);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    return serve(http, engine, block_end_signals());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sluice-serve: %s\n", error.what());
    return 1;
  }
}
