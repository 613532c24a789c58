// The real server program with the model that ships, over real sockets.
#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/http_client.hpp"
#include "tests/support/server_process.hpp"

namespace json = boost::json;
using support::HttpClient;
using support::ServerProcess;

namespace {

const std::string kModel = std::string(SLUICE_SOURCE_DIR) + "/config/models/tiny-k3";

std::string chat_body(const std::string& extra) {
  return R"({"messages":[{"role":"user","content":"Tell me about rivers."}],"seed":7,"max_tokens":48)" +
         extra + "}";
}

// The `data:` payloads of a server-sent event stream.
std::vector<std::string> events_of(const std::string& body) {
  std::vector<std::string> events;
  size_t at = 0;
  while ((at = body.find("data: ", at)) != std::string::npos) {
    const size_t end = body.find("\n\n", at);
    REQUIRE(end != std::string::npos);
    events.push_back(body.substr(at + 6, end - at - 6));
    at = end;
  }
  return events;
}

std::string text_at(const json::value& object, const char* key) {
  const auto* value = object.as_object().if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

}  // namespace

TEST_CASE("The shipped model answers, streams the same bytes, and keeps the connection", "[e2e]") {
  ServerProcess server({"--model", kModel, "--memory-gb", "0.25"});
  HttpClient client(server.port());
  CHECK(client.request("GET", "/health").status == 200);

  const auto whole = client.request("POST", "/v1/chat/completions", chat_body(""));
  INFO(whole.body);
  REQUIRE(whole.status == 200);
  const json::value answer = json::parse(whole.body);
  const json::value& choice = answer.at("choices").at(0);
  const std::string content = text_at(choice.at("message"), "content");
  const std::string reasoning = text_at(choice.at("message"), "reasoning_content");
  CHECK(answer.at("usage").at("completion_tokens").as_int64() > 0);
  CHECK(content.size() + reasoning.size() > 0);

  const auto streamed =
      client.request("POST", "/v1/chat/completions",
                     chat_body(R"(,"stream":true,"stream_options":{"include_usage":true})"));
  REQUIRE(streamed.status == 200);
  std::string streamed_content, streamed_reasoning;
  const auto events = events_of(streamed.body);
  REQUIRE(events.size() > 2);
  CHECK(events.back() == "[DONE]");
  bool finish_seen = false;
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const json::value event = json::parse(events[i]);
    if (event.at("choices").as_array().empty()) {
      json::value usage = event.at("usage");
      auto& details = usage.at("prompt_tokens_details").as_object();
      // The same prompt again: all of it is cached up to the last multiple of 64 before its end.
      const int64_t prompt = usage.at("prompt_tokens").as_int64();
      CHECK(details.at("cached_tokens").as_int64() == (prompt - 1) / 64 * 64);
      details["cached_tokens"] = 0;
      CHECK(usage == answer.at("usage"));
      continue;
    }
    const json::value& delta = event.at("choices").at(0).at("delta");
    streamed_content += text_at(delta, "content");
    streamed_reasoning += text_at(delta, "reasoning_content");
    finish_seen |= event.at("choices").at(0).at("finish_reason") == choice.at("finish_reason");
  }
  CHECK(finish_seen);
  CHECK(streamed_content == content);
  CHECK(streamed_reasoning == reasoning);
}

TEST_CASE("A prompt of token ids is scored and continued with the same ids every time", "[e2e]") {
  ServerProcess server({"--model", kModel, "--memory-gb", "0.25"});
  HttpClient client(server.port());
  const std::string body =
      R"({"prompt":[72,101,108,108,111],"max_tokens":8,"temperature":0,"echo":true,"logprobs":2,"return_token_ids":true})";
  const auto first = client.request("POST", "/v1/completions", body);
  INFO(first.body);
  REQUIRE(first.status == 200);
  const auto second = client.request("POST", "/v1/completions", body);
  const json::value one = json::parse(first.body), two = json::parse(second.body);
  const json::value& choice = one.at("choices").at(0);
  CHECK(choice == two.at("choices").at(0));
  CHECK(choice.at("prompt_token_ids").as_array().size() == 5);
  const auto& logprobs = choice.at("logprobs").at("token_logprobs").as_array();
  const auto generated = choice.at("token_ids").as_array().size();
  CHECK(logprobs.size() >= 5);
  CHECK(logprobs.size() <= 5 + generated);
  CHECK(logprobs[0].is_null());
  for (size_t i = 1; i < logprobs.size(); ++i) CHECK(logprobs[i].to_number<double>() <= 0.0);
}

TEST_CASE("SIGTERM lets a running answer finish and exits with 0 within ten seconds", "[e2e]") {
  ServerProcess server({"--model", kModel, "--memory-gb", "0.25"});
  HttpClient client(server.port());
  client.send(HttpClient::format(
      "POST", "/v1/completions",
      R"({"prompt":"Rivers","max_tokens":64,"ignore_eos":true,"stream":true,"return_token_ids":true})"));
  REQUIRE(client.read_head().status == 200);
  std::string body;
  REQUIRE(client.read_chunk(body));  // it runs
  const auto asked = std::chrono::steady_clock::now();
  server.signal(SIGTERM);
  while (client.read_chunk(body)) {
  }
  CHECK(events_of(body).back() == "[DONE]");
  CHECK(server.wait() == 0);
  CHECK(std::chrono::steady_clock::now() - asked < std::chrono::seconds(10));
}

TEST_CASE("SIGTERM ends an answer that would run too long, within ten seconds", "[e2e]") {
  ServerProcess server({"--model", kModel, "--memory-gb", "1"});
  HttpClient client(server.port());
  client.send(HttpClient::format(
      "POST", "/v1/completions",
      R"({"prompt":"Rivers","max_tokens":100000,"ignore_eos":true,"stream":true})"));
  const auto head = client.read_head();
  REQUIRE(head.status == 200);
  const auto asked = std::chrono::steady_clock::now();
  server.signal(SIGTERM);
  CHECK(server.wait() == 0);
  CHECK(std::chrono::steady_clock::now() - asked < std::chrono::seconds(10));
}

TEST_CASE("The openai Python package gets what it expects", "[e2e]") {
  const std::string script = std::string(SLUICE_SOURCE_DIR) + "/tests/e2e/openai_client.py";
  REQUIRE(std::filesystem::exists(script));
  const char* chosen = std::getenv("SLUICE_PYTHON");
  std::string python = chosen != nullptr ? chosen : "python3";
  if (std::system((python + " -c 'import openai' 2>/dev/null").c_str()) != 0) {
    WARN("no openai package for " + python + " (set SLUICE_PYTHON to one that has it): skipped");
    return;
  }
  ServerProcess server({"--model", kModel, "--memory-gb", "0.25"});
  const std::string command = python + " " + script + " " + std::to_string(server.port());
  CHECK(std::system(command.c_str()) == 0);
}

TEST_CASE("Settings come from TOML, flags win, and an unknown key or flag is refused", "[e2e]") {
  namespace fs = std::filesystem;
  const fs::path file =
      fs::temp_directory_path() / ("sluice-" + std::to_string(::getpid()) + ".toml");
  const std::string program = std::string(SLUICE_BIN_DIR) + "/sluice-serve";
  const auto run = [&](const std::string& arguments) {
    const int status = std::system((program + " " + arguments + " >/dev/null 2>&1").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  {
    std::ofstream(file) << "model = \"" << kModel
                        << "\"\nmemory-gb = 0.25\nmax-running-requests = 3\nchunk-tokens = 128\n";
    ServerProcess server({"--config", file.string(), "--chunk-tokens", "192"});
    const auto info = HttpClient(server.port()).request("GET", "/get_server_info");
    INFO(info.body);
    REQUIRE(info.status == 200);
    CHECK(info.body.find("192") != std::string::npos);
    CHECK(info.body.find("128") == std::string::npos);
  }
  std::ofstream(file) << "model = \"" << kModel << "\"\nmax-runing-requests = 3\n";
  CHECK(run("--config " + file.string()) == 2);
  CHECK(run("--no-such-flag") == 2);
  CHECK(run("--model /no/such/directory --port 0") == 1);
  CHECK(run("--model " + kModel + " --chunk-tokens 8 --port 0") == 1);
  fs::remove(file);
}
