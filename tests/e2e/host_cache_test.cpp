// A server that starts again goes on from what the last one had cached.
#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/http_client.hpp"
#include "tests/support/server_process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace fs = std::filesystem;
namespace json = boost::json;
using support::HttpClient;
using support::ServerProcess;

namespace {

struct Life {
  std::string token_ids, note;
  int64_t cached_tokens = 0;
};

// One process: answers the same prompt of 200 tokens, then ends.
Life live(const std::string& folder, int times = 1) {
  const std::string model = std::string(SLUICE_SOURCE_DIR) + "/config/models/tiny-k3";
  ServerProcess server({"--model", model, "--memory-gb", "0.25", "--host-cache-gb", "0.1",
                        "--host-cache-dir", folder});
  Life life;
  {
    HttpClient client(server.port());
    json::array prompt;
    for (int i = 0; i < 200; ++i) prompt.push_back(i * 7 % 250);
    const std::string body = json::serialize(json::object{
        {"prompt", prompt}, {"max_tokens", 16}, {"seed", 3}, {"return_token_ids", true}});
    for (int i = 0; i < times; ++i) {
      const auto response = client.request("POST", "/v1/completions", body);
      INFO(response.body);
      REQUIRE(response.status == 200);
      const json::value answer = json::parse(response.body);
      life.token_ids = json::serialize(answer.at("choices").at(0).at("token_ids"));
      life.cached_tokens =
          answer.at("usage").at("prompt_tokens_details").at("cached_tokens").as_int64();
    }
    const auto info = client.request("GET", "/get_server_info");
    life.note = json::parse(info.body).at("host_cache").at("note").as_string();
  }
  server.signal(SIGTERM);
  CHECK(server.wait() == 0);
  return life;
}

}  // namespace

TEST_CASE("A restarted server is warm, and one whose file has changed says so and is cold",
          "[e2e]") {
  const support::TemporaryDirectory place;
  const std::string folder = place.file("cache");  // the server makes it
  const Life cold = live(folder);
  CHECK(cold.cached_tokens == 0);
  CHECK(cold.note == "");
  const Life warm = live(folder);
  CHECK(warm.cached_tokens == 192);
  CHECK(warm.token_ids == cold.token_ids);
  CHECK(warm.note.find("host cache: ") == 0);

  const std::string file = folder + "/host-cache.spill";
  REQUIRE(fs::exists(file));
  {
    std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
    bytes.seekp(static_cast<std::streamoff>(fs::file_size(file) / 2));
    bytes.put('x').put('y');
  }
  const Life spoiled = live(folder);
  CHECK(spoiled.cached_tokens == 0);
  CHECK(spoiled.token_ids == cold.token_ids);
  CHECK(spoiled.note.find("host_cache_dir: ignoring") == 0);
}
