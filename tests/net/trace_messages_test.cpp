// Conversations of chat messages as traces: what is encoded bit by bit is what a server reads.
#include <algorithm>
#include <catch2/catch.hpp>

#include "runtime/prompt_encoding.hpp"
#include "tests/net/trace_files.hpp"

using net::Trace;
using trace_files::complaint;
using trace_files::kModel;
using trace_files::read;
using trace_files::read_text;

namespace {

using Ids = std::vector<runtime::TokenId>;

const std::string kAirline =
    std::string(SLUICE_SOURCE_DIR) + "/tests/data/agent-sessions/airline.jsonl";

// The prompt of a request, encoded as a server would.
Ids prompt_of(const runtime::Tokenizer& tokenizer, const Trace& trace,
              const net::TraceRequest& request) {
  auto chat = std::get<runtime::ChatPrompt>(trace.texts[*request.text].prompt);
  chat.messages.resize(request.messages);
  return runtime::encode_prompt(&tokenizer, chat, 1 << 20).value();
}

uint32_t common_blocks(const Ids& a, const Ids& b, uint32_t block_tokens) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<uint32_t>(end.first - a.begin()) / block_tokens;
}

}  // namespace

TEST_CASE("A conversation's requests share what their encoded prompts share", "[net]") {
  const auto tokenizer = runtime::Tokenizer::load(kModel);
  const Trace trace = read({kAirline}, 16);
  REQUIRE(trace.format == net::TraceFormat::kMessages);
  REQUIRE(trace.sessions.size() == 2);
  REQUIRE(trace.requests.size() == 10);
  std::vector<Ids> prompts, answered;
  for (uint32_t i = 0; i < trace.requests.size(); ++i) {
    CAPTURE(i);
    const auto& request = trace.requests[i];
    const auto& chat = std::get<runtime::ChatPrompt>(trace.texts[*request.text].prompt);
    REQUIRE(chat.messages[request.messages].role == "assistant");
    const Ids prompt = prompt_of(*tokenizer, trace, request);
    CHECK(request.input_tokens == prompt.size());
    CHECK(request.output_tokens == request.answer.size());
    CHECK(request.blocks == prompt.size() / 16);
    uint32_t shared = 0, with_answers = 0;
    std::optional<uint32_t> with;
    for (uint32_t j = 0; j < i; ++j) {
      const uint32_t blocks = common_blocks(prompt, prompts[j], 16);
      if (blocks > shared) with = j;
      shared = std::max(shared, blocks);
      with_answers = std::max(with_answers, common_blocks(prompt, answered[j], 16));
    }
    CHECK(request.shared_blocks == shared);
    CHECK(request.shared_with == with);
    CHECK(request.shared_blocks_with_answers == with_answers);
    CHECK(request.after.has_value() == (i > 0 && trace.requests[i - 1].session == request.session));
    Ids both = prompt;
    both.insert(both.end(), request.answer.begin(), request.answer.end());
    prompts.push_back(prompt);
    answered.push_back(std::move(both));
  }
}

TEST_CASE("The next prompt of a conversation begins with the last one and its answer", "[net]") {
  const auto tokenizer = runtime::Tokenizer::load(kModel);
  const Trace trace = read({kAirline});
  for (size_t i = 1; i < trace.requests.size(); ++i) {
    const auto &before = trace.requests[i - 1], &request = trace.requests[i];
    if (!request.after) continue;
    Ids both = prompt_of(*tokenizer, trace, before);
    both.insert(both.end(), before.answer.begin(), before.answer.end());
    const Ids next = prompt_of(*tokenizer, trace, request);
    REQUIRE(next.size() > both.size());
    CHECK(std::equal(both.begin(), both.end(), next.begin()));
  }
}

TEST_CASE("A bad conversation is reported with its line and message", "[net]") {
  const std::string good =
      R"({"session": "a", "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]})"
      "\n";
  CHECK(complaint(good) == "");
  CHECK(complaint(good + R"({"messages": [{"role": "user"}]})") ==
        "2: messages[0].content is required");
  CHECK(complaint(good + R"({"messages": [{"role": "user", "content": "x"}]})") ==
        "2: messages holds no assistant message; expected at least one answer");
  CHECK(complaint(good + R"({"messages": [{"role": "tool", "tool_call_id": "c", "content": "x"},
 {"role": "assistant", "content": "y"}]})")
            .rfind("2: ", 0) == 0);
  trace_files::Files files;
  const auto path = files.write("chats", good);
  CHECK_THROWS_WITH(net::read_trace({path}, {}), Catch::Contains("(--model DIR)"));
  CHECK(read({path}).sessions[0].name == "a");
  CHECK(read_text(good + good, 4).requests[1].shared_with == 0u);
}
