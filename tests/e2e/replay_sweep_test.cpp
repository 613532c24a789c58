// sluice-replay run and sweep as programs: what they write is complete, the same each time, and a
// sweep that was killed goes on where it was.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <string>

#include "runtime/output_files.hpp"
#include "runtime/text_file.hpp"
#include "tests/support/command_output.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/xml_document.hpp"

namespace {

namespace fs = std::filesystem;

const std::string kProgram = std::string(SLUICE_BIN_DIR) + "/sluice-replay";

using Output = support::CommandOutput;

Output replay(const std::string& arguments) {
  return support::run_command(kProgram + " " + arguments + " 2>&1");
}

// A minute of chats in groups of ten that begin alike, and a scenario beside it.
class Traffic {
 public:
  Traffic() {
    std::mt19937_64 random(1);
    std::string rows;
    for (unsigned i = 0; i < 200; ++i) {
      const unsigned blocks = 2 + static_cast<unsigned>(random() % 12);
      std::string ids;
      for (unsigned block = 0; block < blocks; ++block) {
        const unsigned id = block < 2 ? i % 20 * 2 + block : 1000 + i * 100 + block;
        ids += (block == 0 ? "" : ", ") + std::to_string(id);
      }
      rows += "{\"timestamp\": " + std::to_string(i * 300) +
              ", \"input_length\": " + std::to_string(blocks * 512) +
              ", \"output_length\": " + std::to_string(1 + random() % 200) + ", \"hash_ids\": [" +
              ids + "]}\n";
    }
    runtime::write_file(directory_.file("minute.jsonl"), rows);
    runtime::write_file(scenario(),
                        "name = \"a minute\"\n[trace]\nfiles = \"minute.jsonl\"\n[pace]\n"
                        "mode = \"open\"\n[faults]\nleave-share = 0.1\n[server]\n"
                        "kv-tokens = 100000\nmax-running = 16\n");
  }
  std::string scenario() const { return directory_.file("minute.toml"); }
  std::string file(const std::string& name) const { return directory_.file(name); }

 private:
  support::TemporaryDirectory directory_;
};

// Starts a sweep and kills it when so many points have ended.
void kill_after(int points, const std::string& scenario, const std::string& out) {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const pid_t sweep = ::fork();
  if (sweep == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::execl(kProgram.c_str(), kProgram.c_str(), "sweep", scenario.c_str(), "--grid",
            "seed=1,2,3,4,5,6", "--jobs", "1", "--out", out.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  std::FILE* log = ::fdopen(ends[0], "r");
  const std::string wanted = std::to_string(points) + " of 6: ";
  char line[512];
  while (std::fgets(line, sizeof line, log) != nullptr &&
         std::string(line).rfind(wanted, 0) != 0) {
  }
  ::kill(sweep, SIGKILL);
  std::fclose(log);
  int status = 0;
  ::waitpid(sweep, &status, 0);
  REQUIRE(WIFSIGNALED(status));
}

// All files of a folder.
std::map<std::string, std::string> contents(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(directory))
    files[entry.path().filename().string()] = runtime::read_text(entry.path().string());
  return files;
}

}  // namespace

TEST_CASE("A sweep that was killed goes on, and ends as one that was not", "[e2e]") {
  const Traffic traffic;
  const std::string killed = traffic.file("killed"), whole = traffic.file("whole");
  kill_after(2, traffic.scenario(), killed);
  std::map<std::string, fs::file_time_type> before;
  for (const auto& entry : fs::directory_iterator(killed)) {
    if (entry.path().extension() == ".json")
      before[entry.path().string()] = fs::last_write_time(entry.path());
  }
  REQUIRE(before.size() >= 2);
  REQUIRE(before.size() < 6);

  const std::string sweep = "sweep " + traffic.scenario() + " --grid seed=1,2,3,4,5,6 --out ";
  const Output rest = replay(sweep + killed);
  INFO(rest.text);
  REQUIRE(rest.status == 0);
  CHECK(rest.text.find("6 points, " + std::to_string(before.size()) +
                       " of them are there already\n") == 0);
  for (const auto& [path, time] : before) CHECK(fs::last_write_time(path) == time);

  REQUIRE(replay(sweep + whole + " --jobs 3").status == 0);
  const auto files = contents(killed);
  CHECK(files == contents(whole));
  CHECK(files.size() == 13);  // a scenario and a result each, and the report
  CHECK(files.count("run-seed=4.json") == 1);
  CHECK(files.at("run-seed=4.json") != files.at("run-seed=5.json"));
  const std::string html = files.at("report.html");
  CHECK(support::XmlDocument(html.substr(html.find("<html"))).find("svg").size() == 1);

  const Output again = replay(sweep + whole);
  CHECK(again.status == 0);
  CHECK(again.text.find("6 points, 6 of them are there already\n") == 0);
  CHECK(contents(whole) == files);
}

TEST_CASE("A point of a sweep is what run makes of it", "[e2e]") {
  const Traffic traffic;
  const std::string out = traffic.file("out");
  REQUIRE(replay("sweep " + traffic.scenario() +
                 " --set seed=9 --grid server.max-running=4,16 --out " + out)
              .status == 0);
  const std::string result = out + "/run-server.max-running=4.json";
  REQUIRE(replay("run " + traffic.scenario() + " --set seed=9 --set server.max-running=4 --json " +
                 traffic.file("one.json"))
              .status == 0);
  CHECK(runtime::read_text(traffic.file("one.json")) == runtime::read_text(result));
  // And of the scenario that the sweep left.
  REQUIRE(replay("run " + out + "/run-server.max-running=4.toml --json " +
                 traffic.file("two.json"))
              .status == 0);
  CHECK(runtime::read_text(traffic.file("two.json")) == runtime::read_text(result));
}

TEST_CASE("A run draws itself, wherever its trace lies", "[e2e]") {
  const Traffic traffic;
  fs::create_directory(traffic.file("elsewhere"));
  fs::copy(traffic.scenario(), traffic.file("elsewhere/minute.toml"));
  const std::string moved = "run " + traffic.file("elsewhere/minute.toml");
  const Output lost = replay(moved);
  CHECK(lost.status == 1);
  CHECK(lost.text.find(traffic.file("elsewhere/minute.jsonl")) != std::string::npos);
  const Output run = replay(moved + " --traces " + fs::path(traffic.scenario()).parent_path().string() +
                            " --plot " + traffic.file("plot"));
  INFO(run.text);
  REQUIRE(run.status == 0);
  CHECK(run.text.find("requests                  200\n") != std::string::npos);
  const auto files = contents(traffic.file("plot"));
  CHECK(files.size() == 7);
  for (const auto& [name, text] : files) {
    CAPTURE(name);
    CHECK(text.find("nan") == std::string::npos);
    if (name != "report.html") support::XmlDocument svg(text);
  }
  const std::string html = files.at("report.html");
  const support::XmlDocument page(html.substr(html.find("<html")));
  CHECK(page.find("svg").size() == 6);
  CHECK(page.find("h1").front().text == "a minute");
}

TEST_CASE("Settings that do not exist are refused before anything runs", "[e2e]") {
  const Traffic traffic;
  const Output run = replay("run " + traffic.scenario() + " --set server.layuot=TP8");
  CHECK(run.status == 1);
  CHECK(run.text.find("server.layuot is unknown; known are ") != std::string::npos);
  const Output sweep = replay("sweep " + traffic.scenario() +
                              " --grid server.layuot=TP8,TP16 --out " + traffic.file("out"));
  CHECK(sweep.status == 1);
  CHECK(sweep.text.find("server.layuot is unknown; known are ") != std::string::npos);
  CHECK_FALSE(fs::exists(traffic.file("out")));
}
