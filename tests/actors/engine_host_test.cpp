#include "actors/engine_host.hpp"

#include <catch2/catch.hpp>

#include "tests/support/actor_lab.hpp"

using namespace actors;
using runtime::EngineConfig;

namespace {

std::string refusal(const EngineConfig& config) {
  try {
    const EngineHost host(config, alphabet_factory());
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

template <class Value>
std::string refusal(Value EngineConfig::*setting, Value value) {
  EngineConfig config = lab_config();
  config.*setting = value;
  return refusal(config);
}

}  // namespace

TEST_CASE("Settings that cannot work are refused by name", "[actors]") {
  CHECK(refusal(lab_config()) == "accepted");
  CHECK(refusal(&EngineConfig::device, std::string("cuda")) ==
        "device: the CUDA backend has no model kernels yet; use cpu");
  CHECK(refusal(&EngineConfig::device, std::string("tpu")) ==
        "device: \"tpu\" is unknown; cpu, cuda and null exist");
  CHECK(refusal(&EngineConfig::kv_dtype, std::string("fp8")) ==
        "kv_dtype: \"fp8\" is unknown; f32 and bf16 exist");
  CHECK(refusal(&EngineConfig::page_tokens, 48u) ==
        "page_tokens: must be a power of two up to 1024, got 48");
  CHECK(refusal(&EngineConfig::page_tokens, 0u) ==
        "page_tokens: must be a power of two up to 1024, got 0");
  CHECK(refusal(&EngineConfig::chunk_tokens, 63u) ==
        "chunk_tokens: must be at least 64 and at least page_tokens, got 63");
  CHECK(refusal(&EngineConfig::max_running_requests, 0u) ==
        "max_running_requests: must be at least 1");
  CHECK(refusal(&EngineConfig::max_running_requests, 65u) ==
        "max_running_requests: 65 sequences do not fit in a step of chunk_tokens = 64");
  CHECK(refusal(&EngineConfig::context_length, 513u) ==
        "context_length: 513 is more than the model's maximum of 512");
  CHECK(refusal(&EngineConfig::memory_gb, -1.0).find("memory_gb: must lie between") == 0);
  CHECK(refusal(&EngineConfig::memory_gb, 1e-7)
            .find("memory_gb: an arena of 107 bytes is too small") == 0);
  CHECK(refusal(&EngineConfig::host_cache_gb, -1.0).find("host_cache_gb: must lie between") == 0);
  CHECK(refusal(&EngineConfig::host_cache_gb, 0.001) == "accepted");
  EngineConfig contradicting = lab_config();
  contradicting.host_cache_gb = 1;
  contradicting.prefix_cache = false;
  CHECK(refusal(contradicting) ==
        "host_cache_gb: holds what the prefix cache evicts; it needs prefix_cache on");
  CHECK(refusal(&EngineConfig::host_cache_dir, std::string("/tmp")) ==
        "host_cache_dir: fills host memory at the start; it needs host_cache_gb");
  contradicting = lab_config();
  contradicting.host_cache_gb = 0.001;
  contradicting.host_cache_dir = "/proc/version";
  CHECK(refusal(contradicting).find("host_cache_dir: /proc/version: ") == 0);
  CHECK(refusal(&EngineConfig::memory, std::string("split:0.5")) == "accepted");
  for (const char* bad : {"split:1", "split:0", "split:", "split:0.5x", "split", "shared", ""}) {
    CHECK(refusal(&EngineConfig::memory, std::string(bad)) ==
          "memory: \"" + std::string(bad) +
              "\" is unknown; unified and split:RATIO exist, RATIO between 0 and 1");
  }
  CHECK(refusal(&EngineConfig::default_reasoning_effort, std::string("huge"))
            .find("default_reasoning_effort") == 0);
}

TEST_CASE("A context that the page pool cannot hold is refused, or shortened if none was asked for",
          "[actors]") {
  EngineConfig config = lab_config();
  config.memory_gb = 4096.0 / (1024.0 * 1024.0 * 1024.0);  // a state and 63 pages, of 64 B each
  config.context_length = 505;
  CHECK(refusal(config).find("context_length: 505 needs 64 pages") == 0);
  config.context_length = 0;
  EngineHost host(config, alphabet_factory());
  CHECK(host.take_facts().limits.context_length == 504);
  config.memory = "split:0.5";  // 32 of each
  EngineHost split(config, alphabet_factory());
  CHECK(split.take_facts().limits.context_length == 256);
}
