// Every setting of the engine below HTTP, its default and its unit. apps/ fills it from flags and
// TOML; flag names are these names with dashes.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/base/dtype.hpp"
#include "runtime/model.hpp"

namespace runtime {

struct EngineConfig {
  std::string model;           // weights directory (Hugging Face layout)
  std::string device = "cpu";  // cpu | cuda[:N] | null (no arithmetic, for measurements)
  uint32_t threads = 0;        // worker threads; 0 = all cores
  double memory_gb = 2.0;      // arena for states and KV pages, GiB; mapped untouched
  // unified: states and KV pages take from one arena as they need; split:RATIO: that part of it is
  // for states, for ever.
  std::string memory = "unified";
  std::string move_log;  // every move of a state or page is written here; empty: nowhere
#ifdef NDEBUG
  bool check_moves = false;
#else
  bool check_moves = true;  // as they happen: a violation ends the process
#endif
  bool prefix_cache = true;      // requests go on from what earlier ones computed
  double host_cache_gb = 0;      // host memory for what is evicted from the arena, GiB; 0 = none
  std::string host_cache_dir;    // what is cached at the end is written here, and read at the start
  std::string eviction = "benefit";  // benefit | lru: what leaves the cache first
  std::string kv_dtype = "f32";  // f32 | bf16 (lossy)
  uint32_t page_tokens = 64;     // power of two
  uint32_t context_length =
      0;  // prompt + output of one sequence; 0 = the model's maximum, or what the page pool holds
  uint32_t max_running_requests = 64;  // choices (sequences) that hold a state slot
  uint32_t chunk_tokens = 512;         // token rows of one step; at least 64
  uint32_t max_queue = 256;  // choices waiting beyond those; a request of prompts * n choices that
                             // finds no room for all gets 429
  std::string event_log;  // + .scheduler, .cache: files of what happens to the cores; empty: none
  std::string default_reasoning_effort = "max";  // low | medium | high | max
};

// Of EngineConfig::kv_dtype. Throws std::invalid_argument whose message begins with the setting's
// name.
kernels::DType kv_dtype(const std::string& name);
uint64_t arena_bytes(const EngineConfig& config);
uint64_t host_bytes(const EngineConfig& config);
unsigned worker_threads(const EngineConfig& config);
ModelOptions model_options(const EngineConfig& config);  // throws as kv_dtype() does

}  // namespace runtime
