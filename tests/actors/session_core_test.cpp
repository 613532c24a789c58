#include "actors/session_core.hpp"

#include <catch2/catch.hpp>

#include "actors/sequence_ids.hpp"
#include "tests/support/actor_lab.hpp"

using namespace actors;
using runtime::FinishReason;
using runtime::SequenceFinished;
using runtime::SequenceToken;
using runtime::SessionEvent;

namespace {

constexpr runtime::RequestId kRequest{7};

// A session with a hand-written scheduler.
struct Desk {
  uint64_t now = 1'000'000'000;
  Telemetry telemetry{[this] { return now; }};
  CancelBoard board;
  SessionContext context{support::byte_tokenizer(), [this] { return now; }, &telemetry, &board};
  Recorder recorder;
  SessionCore core;
  size_t unfinished = 0;

  explicit Desk(Recorder sink = Recorder{})
      : recorder(sink), core(kRequest, now, sink.sink(), context) {}

  std::optional<runtime::Submit> begin(runtime::GenerateRequest request) {
    TextEncoder encoder(context.tokenizer, {512, 512, {258}});
    auto encoded = encoder.encode(request);
    unfinished = request.n * request.prompts.size();
    return core.on_encoded({std::move(request), std::move(encoded)});
  }
  auto tokens(const std::string& text, uint32_t choice = 0) {
    std::vector<SessionEvent> events;
    for (const char c : text) {
      const auto id = static_cast<runtime::TokenId>(static_cast<unsigned char>(c));
      events.push_back(SequenceToken{kRequest, sequence_of(kRequest, choice), id, {}});
    }
    return core.on_events(std::move(events));
  }
  auto finish(FinishReason reason, uint32_t output_tokens, uint32_t choice = 0,
              std::optional<kernels::Error> error = {}) {
    SequenceFinished finished{
        kRequest, sequence_of(kRequest, choice), reason, {}, std::move(error), 3, output_tokens, 1};
    finished.last = --unfinished == 0;
    return core.on_events({SessionEvent{finished}});
  }
};

}  // namespace

TEST_CASE("A stop string that spans tokens cuts the text and the count", "[actors]") {
  const bool include = GENERATE(false, true);
  Desk desk;
  auto request = ask("abc");
  request.stop = {"STOP"};
  request.include_stop_text = include;
  REQUIRE(desk.begin(request));
  CHECK(desk.tokens("one S").empty());
  CHECK(desk.recorder.text() == "one ");  // "S" may become the stop string
  CHECK(desk.tokens("TO").empty());
  const auto orders = desk.tokens("P and more");
  REQUIRE(orders.size() == 1);
  CHECK(std::get<runtime::StopSequence>(orders[0]).sequence == sequence_of(kRequest, 0));
  CHECK(desk.tokens("late").empty());
  CHECK_FALSE(desk.core.finished());
  desk.finish(FinishReason::kStop, 22);
  CHECK(desk.core.finished());
  CHECK(desk.recorder.text() == (include ? "one STOP" : "one "));
  const auto done = desk.recorder.last<ChoiceDone>();
  REQUIRE(done);
  CHECK(done->output_tokens == 8);
  CHECK(done->stop_text == "STOP");
  CHECK(desk.recorder.last<Done>()->output_tokens == 8);
  CHECK(desk.recorder.ids().size() == 8);
  CHECK(desk.recorder.protocol_error(1) == "");
}

TEST_CASE("Text that only began like a stop string is shown at the end", "[actors]") {
  Desk desk;
  auto request = ask("abc");
  request.stop = {"STOP"};
  REQUIRE(desk.begin(request));
  desk.tokens("one STO");
  desk.finish(FinishReason::kLength, 7);
  CHECK(desk.recorder.text() == "one STO");
  CHECK(desk.recorder.last<ChoiceDone>()->reason == FinishReason::kLength);
  CHECK(desk.recorder.protocol_error(1) == "");
}

TEST_CASE("Choices of one prompt are told apart and share its prompt tokens", "[actors]") {
  Desk desk;
  auto request = ask("abc");
  request.n = 2;
  request.sampling.seed = 5;
  const auto submit = desk.begin(request);
  REQUIRE(submit);
  REQUIRE(submit->sequences.size() == 2);
  CHECK(submit->sequences[1].sampling.choice == 1);
  // One prompt, held once: by both choices and by what the client was told.
  const auto* ids = &submit->sequences[0].prompt.ids();
  CHECK(&submit->sequences[1].prompt.ids() == ids);
  CHECK(&desk.recorder.last<Accepted>()->prompts[0].ids() == ids);
  desk.tokens("x", 0);
  desk.tokens("y", 1);
  desk.finish(FinishReason::kLength, 1, 1);
  CHECK_FALSE(desk.core.finished());
  desk.finish(FinishReason::kLength, 1, 0);
  CHECK(desk.core.finished());
  CHECK(desk.recorder.text(0) == "x");
  CHECK(desk.recorder.text(1) == "y");
  const auto done = desk.recorder.last<Done>();
  REQUIRE(done);
  CHECK(done->prompt_tokens == 3);
  CHECK(done->cached_tokens == 1);
  CHECK(done->output_tokens == 2);
  CHECK(desk.recorder.protocol_error(2) == "");
}

TEST_CASE("A client that is gone posts its cancellation before anything else", "[actors]") {
  Desk desk(Recorder{2});  // takes Accepted and one delta
  REQUIRE(desk.begin(ask("abc")));
  desk.tokens("x");
  CHECK(desk.board.take().empty());
  const auto orders = desk.tokens("y");
  REQUIRE(orders.size() == 1);
  CHECK(std::get<runtime::Abort>(orders[0]).request == kRequest);
  CHECK(desk.board.take().size() == 1);
  CHECK(desk.tokens("z").empty());  // told once
  desk.finish(FinishReason::kAbort, 2);
  CHECK(desk.core.finished());
  CHECK(desk.recorder.protocol_error(1) == "");
}

TEST_CASE("A client that is gone before its prompt is encoded submits nothing", "[actors]") {
  Desk desk(Recorder{0});
  CHECK_FALSE(desk.begin(ask("abc")));
  CHECK(desk.core.finished());
}

TEST_CASE("One failed choice ends its request with the error", "[actors]") {
  Desk desk;
  auto request = ask("abc");
  request.n = 2;
  REQUIRE(desk.begin(request));
  const kernels::Error error{kernels::ErrorCode::kInternal, "not finite", {}};
  const auto orders = desk.finish(FinishReason::kError, 0, 0, error);
  REQUIRE(orders.size() == 1);
  CHECK(std::holds_alternative<runtime::Abort>(orders[0]));
  desk.finish(FinishReason::kAbort, 0, 1);
  CHECK(desk.core.finished());
  CHECK(desk.recorder.last<Failed>()->error.message == "not finite");
  CHECK(desk.recorder.protocol_error(2) == "");
}

TEST_CASE("Reasoning tokens are counted, control tokens are not", "[actors]") {
  Desk desk;
  runtime::GenerateRequest request;
  runtime::ChatPrompt chat;
  chat.messages.push_back({"user", {}, "hi", {}, {}, {}, {}});
  request.prompts = {chat};
  request.parse_chat = true;
  REQUIRE(desk.begin(request));
  desk.tokens("hmm");
  const auto control = [&](const char* name) {
    const auto id = desk.context.tokenizer->special(name);
    REQUIRE(id);
    desk.core.on_events({SessionEvent{SequenceToken{kRequest, sequence_of(kRequest, 0), *id, {}}}});
  };
  control("<|close|>");  // </think><response>
  desk.tokens("think");
  control("<|sep|>");
  control("<|open|>");
  desk.tokens("response");
  control("<|sep|>");
  desk.tokens("yes");
  desk.finish(FinishReason::kStop, 24);
  std::string reasoning, content;
  for (const auto& delta : desk.recorder.all<Delta>()) {
    for (const auto& piece : delta.chat) {
      (piece.kind == runtime::ChatDelta::Kind::kReasoning ? reasoning : content) += piece.text;
    }
  }
  CHECK(reasoning == "hmm");
  CHECK(content == "yes");
  CHECK(desk.recorder.last<ChoiceDone>()->reasoning_tokens == 3);
}
