// The real scheduler and cache on recorded traffic, against counts that know nothing of them.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "net/replay/hit_check.hpp"
#include "net/trace/trace_reader.hpp"
#include "runtime/shipped_files.hpp"

namespace {

// A file of the traces beside the checkout; empty, with a warning, where it is not there.
std::string trace_path(const std::string& name) {
  const std::string path = std::string(SLUICE_SOURCE_DIR) + "/../shared/traces/" + name;
  if (std::filesystem::exists(path)) return path;
  WARN(path << " is not there: skipped");
  return {};
}

std::vector<uint32_t> counted_by(const std::string& script, const std::string& path) {
  const std::string command =
      "python3 " SLUICE_SOURCE_DIR "/tests/e2e/" + script + " '" + path + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> out(popen(command.c_str(), "r"), pclose);
  REQUIRE(out != nullptr);
  std::vector<uint32_t> counts;
  for (unsigned count = 0; std::fscanf(out.get(), "%u", &count) == 1;) counts.push_back(count);
  return counts;
}

bool has_python() { return std::system("python3 -c '' 2>/dev/null") == 0; }

std::vector<net::HitRow> hits_of(const std::string& path) {
  net::TraceOptions options;
  options.model = runtime::shipped_model();
  return net::check_hits(net::read_trace({path}, options));
}

}  // namespace

TEST_CASE("The cache finds every block that an hour of chat shares, and resumes where it should",
          "[e2e][replay]") {
  const std::string path = trace_path("mooncake/conversation_trace.jsonl.gz");
  if (path.empty() || !has_python()) return;
  const auto expected = counted_by("usable_hits.py", path);
  const auto rows = hits_of(path);
  REQUIRE(rows.size() == 12031);
  REQUIRE(expected.size() == rows.size());
  size_t wrong_kv = 0, wrong_usable = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    wrong_kv += rows[i].kv != rows[i].ideal ? 1 : 0;
    wrong_usable += rows[i].usable != expected[i] ? 1 : 0;
  }
  CHECK(wrong_kv == 0);
  CHECK(wrong_usable == 0);
}

TEST_CASE("The cache finds every block that recorded conversations of agents share",
          "[e2e][replay]") {
  for (const char* name :
       {"tau-bench/airline_messages.jsonl.gz", "swe-agent/swe_agent_messages.jsonl",
        "kv-cache-tester/trace_0131.json", "kv-cache-tester/trace_0599.json"}) {
    const std::string path = trace_path(name);
    if (path.empty()) return;
    size_t wrong = 0;
    for (const net::HitRow& row : hits_of(path)) wrong += row.kv != row.ideal ? 1 : 0;
    INFO(name);
    CHECK(wrong == 0);
  }
}
