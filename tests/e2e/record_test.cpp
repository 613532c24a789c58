// sluice-serve --record: what clients sent and got is what the file says, and a trace to read.
#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <utility>

#include "net/trace/request_record.hpp"
#include "net/trace/trace_reader.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/server_process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace json = boost::json;
using support::HttpClient;
using support::ServerProcess;

namespace {

const std::string kModel = std::string(SLUICE_SOURCE_DIR) + "/config/models/tiny-k3";

json::value post(HttpClient& client, const std::string& path, const json::object& body) {
  const auto reply = client.request("POST", path, json::serialize(body));
  INFO(reply.body);
  REQUIRE(reply.status == 200);
  return json::parse(reply.body);
}

struct Served {
  json::value first, second, completion;
};

// Two turns of a conversation, a completion of ids in a named session, and an answer whose client
// leaves.
Served serve_some(const ServerProcess& server) {
  HttpClient client(server.port());
  Served served;
  json::array messages{{{"role", "system"}, {"content", "You answer in one line. Be kind."}},
                       {{"role", "user"}, {"content", "Name a river, and say where it flows."}}};
  served.first = post(client, "/v1/chat/completions",
                      {{"messages", messages}, {"max_tokens", 24}, {"temperature", 0}});
  const json::value& answer = served.first.at("choices").at(0).at("message");
  messages.push_back({{"role", "assistant"}, {"content", answer.at("content")}});
  messages.push_back({{"role", "user"}, {"content", "And a second one?"}});
  served.second = post(client, "/v1/chat/completions",
                       {{"messages", messages}, {"max_tokens", 24}, {"temperature", 0}});
  served.completion = post(client, "/v1/completions",
                           {{"prompt", json::array{5, 6, 7, 8}},
                            {"max_tokens", 5},
                            {"ignore_eos", true},
                            {"return_token_ids", true},
                            {"prompt_cache_key", "batch-1"}});
  HttpClient leaving(server.port());
  leaving.send(HttpClient::format(
      "POST", "/v1/completions",
      R"({"prompt":"Rivers","max_tokens":100000,"ignore_eos":true,"stream":true})"));
  REQUIRE(leaving.read_head().status == 200);
  return served;
}

Served record_to(const std::string& path, std::vector<std::string> flags) {
  flags.insert(flags.end(),
               {"--model", kModel, "--memory-gb", "0.5", "--record", path, "--page-tokens", "16"});
  ServerProcess server(flags);
  const Served served = serve_some(server);
  server.signal(SIGTERM);
  CHECK(server.wait() == 0);
  return served;
}

uint32_t usage(const json::value& answer, const char* name) {
  return answer.at("usage").at(name).to_number<uint32_t>();
}

}  // namespace

TEST_CASE("A recorded run reads back with its prompts, tokens and times", "[e2e]") {
  support::TemporaryDirectory directory;
  const std::string path = directory.file("run.jsonl");
  const Served served = record_to(path, {});
  const net::Trace trace = net::read_trace({path}, {});
  REQUIRE(trace.format == net::TraceFormat::kRecord);
  CHECK(trace.block_tokens == 16);
  REQUIRE(trace.requests.size() == 4);
  const auto &first = trace.requests[0], &second = trace.requests[1],
             &completion = trace.requests[2], &left = trace.requests[3];
  CHECK(first.input_tokens == usage(served.first, "prompt_tokens"));
  CHECK(first.output_tokens == usage(served.first, "completion_tokens"));
  CHECK(second.input_tokens == usage(served.second, "prompt_tokens"));
  CHECK(second.output_tokens == usage(served.second, "completion_tokens"));
  const auto& chat = std::get<runtime::ChatPrompt>(trace.texts[*second.text].prompt);
  REQUIRE(chat.messages.size() == 4);
  CHECK(chat.messages[1].content == "Name a river, and say where it flows.");
  CHECK(chat.effort == "max");
  CHECK(second.session == first.session);
  CHECK(second.conversation == 0);
  CHECK(second.after == 0u);
  CHECK(second.shared_with == 0u);
  CHECK(second.shared_blocks >= (first.input_tokens - 16) / 16);
  CHECK(second.start_s >= first.start_s + first.service_s);
  CHECK(second.think_s == Approx(second.start_s - first.start_s - first.service_s));
  CHECK(trace.sessions[completion.session].name == "batch-1");
  CHECK(std::get<std::vector<runtime::TokenId>>(trace.texts[*completion.text].prompt) ==
        std::vector<runtime::TokenId>{5, 6, 7, 8});
  REQUIRE(completion.answer.size() == 5);
  const auto& ids = served.completion.at("choices").at(0).at("token_ids").as_array();
  for (size_t i = 0; i < 5; ++i)
    CHECK(ids[i].to_number<runtime::TokenId>() == completion.answer[i]);
  CHECK(std::get<std::string>(trace.texts[*left.text].prompt) == "Rivers");
  CHECK(left.output_tokens < 100000);
  CHECK(left.service_s > 0);
}

TEST_CASE("A run recorded as hashes has the same shape and none of the words", "[e2e]") {
  support::TemporaryDirectory directory;
  const std::string open = directory.file("open"), hidden = directory.file("hidden");
  record_to(open, {});
  record_to(hidden, {"--record-hashed"});
  const std::string bytes = net::read_trace_file(hidden).bytes;
  for (const char* words : {"river", "Rivers", "kind", "batch-1"})
    CHECK(bytes.find(words) == bytes.npos);
  const net::Trace a = net::read_trace({open}, {}), b = net::read_trace({hidden}, {});
  REQUIRE(a.requests.size() == b.requests.size());
  CHECK(b.texts.empty());
  for (size_t i = 0; i < 3; ++i) {  // greedy, or of a fixed length: the same in both runs
    CAPTURE(i);
    const auto &x = a.requests[i], &y = b.requests[i];
    CHECK(x.input_tokens == y.input_tokens);
    CHECK(x.output_tokens == y.output_tokens);
    CHECK(x.blocks == y.blocks);
    CHECK(x.shared_blocks == y.shared_blocks);
    CHECK(x.shared_with == y.shared_with);
    CHECK(x.after == y.after);
    CHECK(x.session == y.session);
  }
}

TEST_CASE(
    "Hashing without a record is wrong usage; a record that cannot be written ends the server",
    "[e2e]") {
  const std::string program = std::string(SLUICE_BIN_DIR) + "/sluice-serve --model " + kModel;
  const auto status = [&](const std::string& flags) {
    const int raw = std::system((program + flags + " >/dev/null 2>&1").c_str());
    return WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
  };
  CHECK(status(" --record-hashed") == 2);
  CHECK(status(" --record /nonexistent/record") == 1);
}
