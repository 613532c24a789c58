// Recorded agent conversations through the chat API of a real server: what a turn computes again is
// what is new in it, up to the distance between checkpoints. SLUICE_SESSIONS names another file of
// conversations ({"session", "messages"} a line).
#include <algorithm>
#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/http_client.hpp"
#include "tests/support/server_process.hpp"

namespace json = boost::json;
using support::HttpClient;
using support::ServerProcess;

namespace {

constexpr int64_t kGrid = 64;  // distance of checkpoints; the page size is 64 too
const std::string kModel = std::string(SLUICE_SOURCE_DIR) + "/config/models/tiny-k3";

using Tokens = std::vector<int64_t>;

std::vector<json::array> conversations() {
  const char* own = std::getenv("SLUICE_SESSIONS");
  std::ifstream in(own != nullptr ? own
                                  : std::string(SLUICE_SOURCE_DIR) +
                                        "/tests/data/agent-sessions/airline.jsonl");
  std::vector<json::array> all;
  for (std::string line; std::getline(in, line);)
    all.push_back(json::parse(line).at("messages").as_array());
  REQUIRE(all.size() >= 2);
  return all;
}

struct Turn {
  Tokens prompt;
  int64_t cached = 0;
  int64_t computed() const { return static_cast<int64_t>(prompt.size()) - cached; }
};

int64_t common_prefix(const Tokens& a, const Tokens& b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return end.first - a.begin();
}

json::value post(HttpClient& client, const std::string& path, const json::object& body) {
  const auto reply = client.request("POST", path, json::serialize(body));
  INFO(reply.body);
  REQUIRE(reply.status == 200);
  return json::parse(reply.body);
}

// The answer is what was recorded, whatever the model says: the client sends it with its next turn.
Turn ask(HttpClient& client, const json::array& messages) {
  Turn turn;
  const json::value tokens = post(client, "/tokenize", {{"messages", messages}});
  for (const json::value& id : tokens.at("tokens").as_array())
    turn.prompt.push_back(id.as_int64());
  const json::value answer =
      post(client, "/v1/chat/completions",
           {{"messages", messages}, {"max_tokens", 4}, {"temperature", 0}});
  const json::value& usage = answer.at("usage");
  REQUIRE(usage.at("prompt_tokens").as_int64() == static_cast<int64_t>(turn.prompt.size()));
  turn.cached = usage.at("prompt_tokens_details").at("cached_tokens").as_int64();
  return turn;
}

// One turn for each answer of the conversation.
std::vector<Turn> play(HttpClient& client, const json::array& conversation) {
  std::vector<Turn> turns;
  json::array messages;
  for (const json::value& message : conversation) {
    if (message.at("role").as_string() == "assistant") turns.push_back(ask(client, messages));
    messages.push_back(message);
  }
  return turns;
}

}  // namespace

TEST_CASE("A turn of a recorded agent session computes what is new, up to a grid step", "[e2e]") {
  ServerProcess server({"--model", kModel, "--memory-gb", "1"});
  HttpClient client(server.port(), 120);
  size_t turns_played = 0;
  for (const json::array& conversation : conversations()) {
    const std::vector<Turn> turns = play(client, conversation);
    turns_played += turns.size();
    for (size_t i = 1; i < turns.size(); ++i) {
      const auto size = static_cast<int64_t>(turns[i].prompt.size());
      const int64_t fresh = size - common_prefix(turns[i - 1].prompt, turns[i].prompt);
      CAPTURE(i, size, fresh, turns[i].cached);
      CHECK(turns[i].computed() <= fresh + kGrid);
    }
    // The same once more: up to the last checkpoint before its end.
    const Turn again = ask(client, [&] {
      json::array messages = conversation;
      while (messages.back().at("role").as_string() != "assistant") messages.pop_back();
      messages.pop_back();
      return messages;
    }());
    CHECK(again.cached == (static_cast<int64_t>(again.prompt.size()) - 1) / kGrid * kGrid);
  }
  CHECK(turns_played >= 10);
}

TEST_CASE("The first branch off a recorded prompt plants a checkpoint, the second goes on from it",
          "[e2e]") {
  ServerProcess server({"--model", kModel, "--memory-gb", "1"});
  HttpClient client(server.port(), 120);
  const json::array conversation = conversations().front();
  const auto with_question = [&](const std::string& text) {
    json::array messages = conversation;
    while (messages.back().at("role").as_string() != "assistant") messages.pop_back();
    messages.back() = {{"role", "user"}, {"content", text}};
    return messages;
  };
  // Long enough that the branch point lies behind the reach of the trunk's own last checkpoint.
  std::string filler;
  for (int i = 0; i < 60; ++i) filler += " and number " + std::to_string(i * 37);
  const Turn trunk = ask(client, with_question("Alpha" + filler));
  const Turn first = ask(client, with_question("Beta" + filler));
  const Turn second = ask(client, with_question("Gamma" + filler));
  const int64_t branch = common_prefix(trunk.prompt, first.prompt) / kGrid * kGrid;
  CHECK(common_prefix(first.prompt, second.prompt) / kGrid * kGrid == branch);
  CHECK(first.cached <= branch);
  CHECK(second.cached == branch);
}
