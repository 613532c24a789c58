// The real console against the real server: one command at a time from the shell, live and from
// saved files.

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/command_output.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/server_process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace json = boost::json;

namespace {

const std::string kModel = std::string(SLUICE_SOURCE_DIR) + "/config/models/tiny-k3";

struct Ran {
  int code = -1;
  std::string out;  // and what went to stderr
  json::value value() const { return json::parse(out); }
};

Ran console(const std::string& arguments) {
  const std::string command =
      std::string(SLUICE_BIN_DIR) + "/sluice-console " + arguments + " 2>&1 < /dev/null";
  const support::CommandOutput ran = support::run_command(command);
  return {ran.status, ran.text};
}

std::string ask(support::HttpClient& client, const std::string& text) {
  const auto reply = client.request(
      "POST", "/v1/completions",
      R"({"prompt":")" + text + R"(","max_tokens":4,"temperature":0,"ignore_eos":true})");
  REQUIRE(reply.status == 200);
  return json::parse(reply.body).at("id").as_string().c_str();
}

}  // namespace

TEST_CASE("The console shows a server's memory, and a saved file answers the same",
          "[e2e][console]") {
  const support::TemporaryDirectory folder;
  const std::string socket = folder.file("admin.sock"), log = folder.file("moves"),
                    saved = folder.file("saved");
  support::ServerProcess server({"--model", kModel, "--memory-gb", "0.25", "--admin-socket", socket,
                                 "--move-log", log});
  support::HttpClient client(server.port());
  std::string river;
  for (int i = 0; i < 60; ++i) river += "the river runs ";
  const std::string first = ask(client, river), second = ask(client, river);

  const std::string at = "--connect " + socket + " --json ";
  const json::value cold = console(at + "why " + first).value();
  CHECK(cold.at("admissions").at(0).at("reason") == "cold");
  const json::value hit = console(at + "why " + second).value();
  CHECK(hit.at("admissions").at(0).at("restored").to_number<int>() > 0);

  const json::value tree = console(at + "tree").value();
  REQUIRE(tree.at("nodes").as_array().size() >= 2);
  const std::string node =
      std::to_string(tree.at("nodes").as_array().back().at("node").to_number<int>());
  CHECK(console(at + "tree --contains river").value().at("nodes").as_array().size() >= 2);
  CHECK(console(at + "tree --contains mountain").value().at("nodes").as_array().empty());
  CHECK(console(at + "pin " + node).value().at("pins") == 1);
  const Ran refused = console("--connect " + socket + " evict " + node);
  CHECK(refused.code == 1);
  CHECK(refused.out == "sluice-console: node " + node + " is pinned: unpin it first\n");

  REQUIRE(console("--connect " + socket + " snapshot " + saved).code == 0);
  const std::vector<std::string> commands{
      "tree", "tree --prefix \"the river\"", "slots", "pool", "requests",
      "moves --last 7 --kind free", "verify", "node " + node, "why " + second};
  for (const std::string& command : commands) {
    CAPTURE(command);
    const Ran live = console(at + command), later = console("--open " + saved + " --json " + command);
    CHECK(live.code == 0);
    CHECK(later.code == 0);
    CHECK(live.out == later.out);
    CHECK(console("--connect 127.0.0.1:" + std::to_string(server.port()) + " --json " + command)
              .out == live.out);
    CHECK(console("--open " + saved + " " + command).out.size() > 10);  // the text for people
  }
  // What runs is the moment's; what was counted is not.
  CHECK(console(at + "stats").value().at("counters") ==
        console("--open " + saved + " --json stats").value().at("counters"));
  CHECK(console("--open " + saved + " evict " + node).code == 1);
  CHECK(console(at + "unpin " + node).value().at("pins") == 0);
  CHECK(console(at + "evict " + node).value().at("slots") == 1);

  CHECK(console("--connect " + socket + " jump").code == 2);
  CHECK(console("--connect " + socket + " node x").code == 2);
  CHECK(console("--connect " + socket + " --nonsense").code == 2);
  CHECK(console("--connect " + folder.file("nobody.sock") + " slots").code == 1);
  CHECK(console("--open " + folder.file("nothing") + " slots").code == 1);
  CHECK(console("help").code == 0);

  server.signal(SIGTERM);
  REQUIRE(server.wait() == 0);
  CHECK_FALSE(std::filesystem::exists(socket));
  const Ran verified = console("--open " + log + " --json verify");
  CHECK(verified.code == 0);
  CHECK(verified.value().at("whole") == true);
  CHECK(verified.value().at("violations") == 0);
  CHECK(verified.value().at("left_over").as_array().empty());
  CHECK(console("--open " + log + " moves --last 3").code == 0);
  CHECK(console("--open " + log + " tree").code == 1);

  // A damaged log is named, and its exit code says so.
  std::FILE* const file = std::fopen(log.c_str(), "r+b");
  std::fseek(file, 72 + 10 * 64 + 56, SEEK_SET);  // header, ten records, a target's physical place
  const uint32_t elsewhere = 3;
  std::fwrite(&elsewhere, sizeof elsewhere, 1, file);
  std::fclose(file);
  CHECK(console("--open " + log + " verify").code == 1);
}
