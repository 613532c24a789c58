// sluice-serve: flags and TOML into settings, then the engine, then HTTP, until a signal asks for
// the end. With --bench: the engine alone, measured.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/engine_settings.hpp"
#include "actors/system.hpp"
#include "kernels/base/trace_events.hpp"
#include "memory/cache_log.hpp"
#include "net/recording_service.hpp"
#include "net/server.hpp"
#include "runtime/bench_report.hpp"
#include "runtime/chat.hpp"
#include "runtime/scheduler_log.hpp"

namespace {

using actors::ServicePhase;

// From the signal to the end of the process: at most 10 s, whatever runs or hangs.
constexpr std::chrono::milliseconds kDrainTime{7500};  // for running answers
constexpr std::chrono::milliseconds kSpillTime{
    3500};                                            // less for them when there is a file to write
constexpr std::chrono::milliseconds kSpillEnd{9200};  // which is whole by then
constexpr std::chrono::milliseconds kExitTime{9500};  // then the process ends as it is

void add_http_flags(CLI::App& app, net::ServerConfig& http) {
  const std::string group = "HTTP";
  app.add_option("--host", http.host, "Address to listen on")->capture_default_str()->group(group);
  app.add_option("--port", http.port, "TCP port; 0 = any free one")
      ->capture_default_str()
      ->group(group);
  http.admin_socket = "auto";
  app.add_option("--admin-socket", http.admin_socket,
                 "UNIX socket for sluice-console: a path, auto (sluice-PORT.sock in "
                 "$XDG_RUNTIME_DIR) or none")
      ->capture_default_str()
      ->group(group);
  app.add_option("--api-key", http.api_key, "Key clients must send as a bearer token")
      ->group(group);
}

void add_engine_flags(CLI::App& app, runtime::EngineConfig& engine) {
  const std::string model = "Model";
  app.add_option("--model", engine.model, "Weights directory (Hugging Face layout)")->group(model);
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
  app.add_option("--memory", engine.memory,
                 "unified: states and pages take what they need; split:RATIO: a fixed part is for "
                 "states")
      ->capture_default_str()
      ->group(memory);
  app.add_option("--move-log", engine.move_log,
                 "Write every move of a state or page to this file, for sluice-console --open")
      ->group(memory);
  app.add_option_function<std::string>(
         "--prefix-cache",
         [&engine](const std::string& value) { engine.prefix_cache = value == "on"; },
         "on: requests go on from prefixes that earlier ones computed; off: each computes its own")
      ->check(CLI::IsMember({"on", "off"}))
      ->default_str(engine.prefix_cache ? "on" : "off")
      ->group(memory);
  app.add_option("--host-cache-gb", engine.host_cache_gb,
                 "GiB of host memory for states and KV pages that leave the arena; 0 = none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(memory);
  app.add_option("--host-cache-dir", engine.host_cache_dir,
                 "Directory where what is cached is written at the end and read at the start; one "
                 "per model")
      ->group(memory);
  app.add_option("--eviction", engine.eviction,
                 "What leaves the prefix cache first: benefit (least recompute cost saved x chance "
                 "of reuse / bytes) or lru")
      ->check(CLI::IsMember({"benefit", "lru"}))
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

// What the cores decided, fed to fresh ones: 0 if they decide the same, 1 if not.
int check_event_log(const std::string& base) {
  for (const memory::EventLogCheck& check : {runtime::check_scheduler_log(base + ".scheduler"),
                                             memory::check_cache_log(base + ".cache")}) {
    if (!check.difference.empty()) {
      std::printf("%s\n", check.difference.c_str());
      return 1;
    }
    std::printf("%llu answers are the recorded ones\n",
                static_cast<unsigned long long>(check.answers));
  }
  return 0;
}

// Keeps a trace of the process and writes it, if a file is named.
class Profile {
 public:
  explicit Profile(const std::string& path) : path_(path) {
    if (!path_.empty()) kernels::TraceEvents::start();
  }
  // Once, when there is nothing more to see.
  void write() const {
    if (path_.empty()) return;
    kernels::TraceEvents::stop();
    kernels::TraceEvents::write(path_);
    std::fprintf(stderr, "sluice-serve: wrote the profile to %s\n", path_.c_str());
  }

 private:
  const std::string path_;
};

struct BenchFlags {
  bool bench = false, json = false, deep = false;
  std::string points;   // empty: the default ones
  uint32_t repeat = 0;  // 0: automatic
};

void add_bench_flags(CLI::App& app, BenchFlags& flags) {
  const std::string group = "Benchmark";
  app.add_flag("--bench", flags.bench,
               "Measure prefill and decode tokens/s of the model, print them, and end")
      ->group(group);
  app.add_flag("--json", flags.json, "Print one JSON object instead of a table")->group(group);
  app.add_option("--bench-points", flags.points,
                 "Only these, by comma: prefill_TOKENS, decode_BATCH, decode_BATCH_depth_POSITIONS")
      ->check([](const std::string& names) {
        const auto points = runtime::parse_bench_points(names);
        return points ? std::string() : points.error().message;
      })
      ->group(group);
  app.add_flag("--bench-depth", flags.deep, "Also decode_1 at 8192 and 32768 positions")
      ->group(group);
  app.add_option("--bench-repeat", flags.repeat,
                 "Passes of each point, the best counts; 0 = for about six seconds")
      ->check(CLI::Range(0u, 1000u))
      ->capture_default_str()
      ->group(group);
}

int bench(const runtime::EngineConfig& engine, const BenchFlags& flags, const Profile& profile) {
  actors::check_config(engine);
  runtime::BenchOptions options;
  options.repeat = flags.repeat;
  options.points = flags.points.empty() ? runtime::default_bench_points(flags.deep)
                                        : runtime::parse_bench_points(flags.points).value();
  bool headed = flags.json;
  const auto print_row = [&](const runtime::BenchFigure& figure) {
    if (!std::exchange(headed, true)) std::printf("%s\n", runtime::bench_table_head().c_str());
    if (flags.json) return;
    std::printf("%s\n", runtime::bench_table_row(figure).c_str());
    std::fflush(stdout);
  };
  const runtime::BenchReport report = runtime::bench_model(engine, options, print_row);
  if (flags.json) std::printf("%s\n", runtime::bench_json(report).c_str());
  profile.write();
  return 0;
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

void spill(actors::System& system, const runtime::EngineConfig& engine,
           std::chrono::steady_clock::time_point end) {
  if (engine.host_cache_dir.empty()) return;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  const auto report = system.spill(left);
  if (!report) {
    std::fprintf(stderr, "sluice-serve: no time was left to write the cache\n");
  } else if (!report->trouble.empty()) {
    std::fprintf(stderr, "sluice-serve: the cache was not written: %s\n", report->trouble.c_str());
  } else {
    std::fprintf(stderr, "sluice-serve: wrote %s to %s%s\n", runtime::spill_text(*report).c_str(),
                 engine.host_cache_dir.c_str(), report->whole ? "" : ", as time allowed");
  }
}

struct RecordFlags {
  std::string file;  // empty: nothing is recorded
  bool hashed = false;
};

void add_record_flags(CLI::App& app, RecordFlags& flags, const std::string& group) {
  auto* file = app.add_option("--record", flags.file,
                              "Record finished requests here, a JSON line each, for sluice-replay")
                   ->group(group);
  app.add_flag("--record-hashed", flags.hashed,
               "Of prompts and answers record hashes of blocks alone, salted with a secret")
      ->needs(file)
      ->group(group);
}

std::unique_ptr<net::RecordFile> open_record(const RecordFlags& flags,
                                             const runtime::EngineConfig& engine) {
  if (flags.file.empty()) return nullptr;
  net::RecordStyle style{engine.page_tokens, flags.hashed, 0};
  std::random_device device;
  if (flags.hashed) style.secret = uint64_t{device()} << 32 | device();
  std::filesystem::path model(engine.model);
  if (!model.has_filename()) model = model.parent_path();
  return std::make_unique<net::RecordFile>(flags.file, model.filename().string(), style);
}

int serve(const net::ServerConfig& http, const runtime::EngineConfig& engine,
          const RecordFlags& record_flags, const sigset_t& signals, const Profile& profile) {
  std::atomic<bool> lost{false};
  actors::SystemOptions options;
  options.on_failure = [&lost](const std::string& reason) {
    std::fprintf(stderr, "sluice-serve: the engine cannot go on: %s\n", reason.c_str());
    lost = true;
    kill(getpid(), SIGTERM);  // wakes the main thread
  };
  const auto record = open_record(record_flags, engine);  // outlives what the system still says
  const auto system = actors::System::start(engine, options);
  std::optional<net::RecordingService> recording;
  if (record) recording.emplace(*system, *record);
  net::Server server(http, record ? static_cast<actors::Service&>(*recording) : *system);
  server.run_in_background();  // /health answers 503 while the weights load
  std::thread loading([&] {    // so that a signal is seen while they do
    try {
      system->wait_ready();
      const std::string note = system->info().host_cache_note;
      if (!note.empty()) std::fprintf(stderr, "sluice-serve: %s\n", note.c_str());
      print_ready(server, http, engine);
    } catch (const std::exception& error) {
      if (system->phase().kind == ServicePhase::Kind::kFailed) options.on_failure(error.what());
    }
  });
  int received = 0;
  sigwait(&signals, &received);
  const auto asked = std::chrono::steady_clock::now();
  exit_after(kExitTime, lost ? 1 : 0);
  if (!lost) {
    std::fprintf(stderr, "sluice-serve: %s, finishing what runs\n",
                 received == SIGTERM ? "SIGTERM" : "SIGINT");
  }
  if (system->phase().kind == ServicePhase::Kind::kStarting) {
    server.stop(std::chrono::milliseconds{0});
    profile.write();
    std::_Exit(0);  // a load cannot be interrupted, and nobody waits for it; stdout is flushed
  }
  const bool spills = !engine.host_cache_dir.empty();
  server.stop(spills ? kDrainTime - kSpillTime : kDrainTime);
  system->drain(std::chrono::milliseconds(200));
  if (!lost) spill(*system, engine, asked + kSpillEnd);
  loading.join();
  profile.write();
  return lost ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Sluice: an OpenAI-compatible server for Kimi-K3-class hybrid models",
               "sluice-serve");
  net::ServerConfig http;
  runtime::EngineConfig engine;
  BenchFlags bench_flags;
  RecordFlags record_flags;
  std::string profile_path, event_log;
  app.set_config("--config", "", "TOML file of settings; flags win");
  app.allow_config_extras(CLI::config_extras_mode::error);
  add_engine_flags(app, engine);
  add_http_flags(app, http);
  add_bench_flags(app, bench_flags);
  app.add_option(
         "--profile", profile_path,
         "Write a trace of the run (messages, steps, kernels) here at its end, for Perfetto")
      ->group("Benchmark");
  const std::string logs = "Logs";
  app.add_option("--event-log", engine.event_log,
                 "Record here (BASE.scheduler, BASE.cache) what happens to scheduler and cache")
      ->group(logs);
  app.add_option("--check-event-log", event_log,
                 "Run such a record again and end: do the cores decide the same?")
      ->group(logs);
  add_record_flags(app, record_flags, logs);
  try {
    app.parse(argc, argv);
    if (engine.model.empty() && event_log.empty()) throw CLI::RequiredError("--model");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    const Profile profile(profile_path);
    if (!event_log.empty()) return check_event_log(event_log);
    if (bench_flags.bench) return bench(engine, bench_flags, profile);
    return serve(http, engine, record_flags, block_end_signals(), profile);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sluice-serve: %s\n", error.what());
    return 1;
  }
}
