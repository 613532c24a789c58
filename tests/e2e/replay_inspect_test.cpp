// sluice-replay inspect on small traces and, where they are, on the public ones beside the
// checkout: its counts are those of a script that knows nothing of prefix trees.
#include <algorithm>
#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "net/trace/trace_reader.hpp"
#include "tests/support/command_output.hpp"
#include "tests/support/temporary_directory.hpp"

namespace json = boost::json;

namespace {

const std::string kTraces = std::string(SLUICE_SOURCE_DIR) + "/../shared/traces";
const std::string kData =
    std::string(SLUICE_SOURCE_DIR) + "/tests/data/agent-sessions/airline.jsonl";

using Output = support::CommandOutput;

Output inspect(const std::string& arguments) {
  return support::run_command(std::string(SLUICE_BIN_DIR) + "/sluice-replay inspect " + arguments +
                              " 2>&1");
}

json::object facts(const std::string& arguments) {
  const Output output = inspect("--json " + arguments);
  INFO(output.text);
  REQUIRE(output.status == 0);
  return json::parse(output.text).as_object();
}

int64_t count(const json::object& object, const char* name) {
  return object.at(name).to_number<int64_t>();
}

double percent(const json::object& facts, const char* name) {
  return 100.0 * static_cast<double>(count(facts, name)) /
         static_cast<double>(count(facts, "requests"));
}

bool traces_are_there() {
  if (std::filesystem::exists(kTraces)) return true;
  WARN("no " + kTraces + ": skipped");
  return false;
}

// Nothing without python3.
json::object counted_by_script(const std::string& files) {
  if (support::run_command("python3 --version 2>&1").status != 0) {
    WARN("no python3: skipped");
    return {};
  }
  const std::string script = std::string(SLUICE_SOURCE_DIR) + "/tests/e2e/ideal_hits.py ";
  return json::parse(support::run_command("python3 " + script + files + " 2>&1").text).as_object();
}

void check_against_script(const json::object& found, const std::string& files) {
  const json::object counted = counted_by_script(files);
  if (counted.empty()) return;
  for (const char* name : {"requests", "blocks", "ideal_hit_blocks", "cold"}) {
    CAPTURE(name);
    CHECK(count(found, name) == count(counted, name));
  }
}

std::string raw_sessions() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kTraces + "/kv-cache-tester"))
    if (entry.path().extension() == ".json") names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  std::string all;
  for (const auto& name : names) all += name + " ";
  return all;
}

}  // namespace

TEST_CASE("inspect says what a trace holds, as text and as JSON", "[e2e]") {
  const Output text = inspect(kData);
  INFO(text.text);
  CHECK(text.status == 0);
  CHECK(text.text.find("messages") != text.text.npos);
  CHECK(text.text.find("ideal hit rate") != text.text.npos);
  const json::object found = facts(kData);
  CHECK(count(found, "sessions") == 2);
  CHECK(count(found, "cold") == 1);
  CHECK(count(found, "ideal_hit_blocks_with_answers") >= count(found, "ideal_hit_blocks"));
  CHECK(inspect("--json " + kData).text == inspect("--json " + kData).text);
}

TEST_CASE("inspect ends with 1 and the place of a mistake, with 2 for wrong usage", "[e2e]") {
  support::TemporaryDirectory directory;
  std::ofstream(directory.file("bad"))
      << R"({"timestamp": 0, "input_length": 4, "output_length": 1, "hash_ids": [1]})"
      << "\n"
      << R"({"timestamp": 0, "input_length": 4, "output_length": "1", "hash_ids": [1]})"
      << "\n";
  const Output bad = inspect(directory.file("bad"));
  CHECK(bad.status == 1);
  CHECK(bad.text ==
        "sluice-replay: " + directory.file("bad") +
            ":2: output_length must be an integer between 0 and 1073741824, got \"1\"\n");
  CHECK(inspect("").status == 2);
  CHECK(inspect("--sideways " + kData).status == 2);
}

TEST_CASE("The kv-cache-tester tree has the published facts", "[e2e]") {
  if (!traces_are_there()) return;
  const std::string file = kTraces + "/kv-cache-tester/requests_tree.csv.gz";
  const json::object found = facts(file);
  CHECK(count(found, "requests") == 24015);
  CHECK(count(found, "sessions") == 355);
  CHECK(found.at("ideal_hit_rate").to_number<double>() == Approx(0.9633).margin(0.00005));
  CHECK(percent(found, "extending") == Approx(91.6).margin(0.05));
  CHECK(percent(found, "diverging") == Approx(6.8).margin(0.05));
  CHECK(percent(found, "cold") == Approx(1.6).margin(0.05));
  check_against_script(found, file);
}

TEST_CASE("Mooncake's hour of chat has the published facts", "[e2e]") {
  if (!traces_are_there()) return;
  const std::string file = kTraces + "/mooncake/conversation_trace.jsonl.gz";
  const json::object found = facts(file);
  CHECK(count(found, "requests") == 12031);
  CHECK(found.at("ideal_hit_rate").to_number<double>() == Approx(0.366).margin(0.0005));
  CHECK(found.at("input_tokens").at("mean").to_number<double>() == Approx(12035).margin(0.5));
  CHECK(found.at("output_tokens").at("mean").to_number<double>() == Approx(343).margin(0.5));
  check_against_script(found, file);
}

TEST_CASE("Raw kv-cache-tester sessions have the counts of the script, file by file and together",
          "[e2e]") {
  if (!traces_are_there()) return;
  const std::string files = raw_sessions();
  check_against_script(facts(files), files);
  CHECK(facts(kTraces + "/kv-cache-tester") == facts(files));
}

TEST_CASE("A raw session and its rows of the tree are one trace", "[e2e]") {
  if (!traces_are_there()) return;
  const auto tree = net::read_trace({kTraces + "/kv-cache-tester/requests_tree.csv.gz"}, {});
  const auto raw = net::read_trace({kTraces + "/kv-cache-tester"}, {});
  REQUIRE(raw.sessions.size() == 10);
  std::vector<std::vector<uint32_t>> by_session(tree.sessions.size());
  for (uint32_t i = 0; i < tree.requests.size(); ++i)
    by_session[tree.requests[i].session].push_back(i);
  uint32_t next = 0, compared = 0;
  for (const auto& session : raw.sessions) {
    CAPTURE(session.name);
    const auto same =
        std::find_if(tree.sessions.begin(), tree.sessions.end(),
                     [&](const net::TraceSession& other) { return other.name == session.name; });
    if (same == tree.sessions.end()) {  // the tree holds six of the ten
      next += session.requests;
      continue;
    }
    ++compared;
    const auto& rows = by_session[static_cast<size_t>(same - tree.sessions.begin())];
    REQUIRE(rows.size() == session.requests);
    const uint32_t first = next;
    for (const uint32_t row : rows) {
      const auto &a = raw.requests[next++], &b = tree.requests[row];
      CAPTURE(next - first);
      CHECK(a.conversation == b.conversation);
      CHECK(a.input_tokens == b.input_tokens);
      CHECK(a.output_tokens == b.output_tokens);
      CHECK(a.blocks == b.blocks);
      CHECK(a.shared_blocks == b.shared_blocks);
      CHECK(a.shared_with.value_or(first) - first == b.shared_with.value_or(rows[0]) - rows[0]);
      CHECK(a.after.value_or(first) - first == b.after.value_or(rows[0]) - rows[0]);
      // The tree does not say when sub-agents began.
      CHECK(a.start_s == Approx(b.start_s).margin(a.conversation == 0 ? 0 : 2));
    }
  }
  CHECK(compared == 6);
}
