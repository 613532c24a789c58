// Prompts on their way through the text worker: bounded by credits, ended by aborts and deadlines.
#include <catch2/catch.hpp>

#include "actors/system.hpp"
#include "tests/support/actor_lab.hpp"

using namespace actors;
using kernels::ErrorCode;
using std::chrono::milliseconds;

namespace {

constexpr TextLimits kNoLimits{512, 1'000'000, {}};

// Traces a lab while it lives.
class Hops {
 public:
  Hops() {
    runtime::Trace::global().enable(1 << 12, [this] { return ++ticks_; });
  }
  ~Hops() { runtime::Trace::global().disable(); }
  bool has(runtime::RequestId request, const std::string& name) const {
    for (const auto& hop : runtime::Trace::global().records(request)) {
      if (name == hop.name) return true;
    }
    return false;
  }

 private:
  uint64_t ticks_ = 0;
};

}  // namespace

TEST_CASE("Text that cannot fit is refused before any of it is encoded", "[actors]") {
  const TextEncoder encoder(support::byte_tokenizer(), {512, 10, {}});
  const size_t most = 10 * support::byte_tokenizer()->longest_token_bytes();
  int questions = 0;
  const auto wanted = [&] { return ++questions > 0; };
  auto fits = ask(std::string(most, 'x'));
  encoder.encode(fits, wanted);
  CHECK(questions > 0);
  questions = 0;
  auto too_long = ask(std::string(most + 1, 'x'));
  const auto refused = encoder.encode(too_long, wanted);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kInvalid);
  CHECK(refused.error().message.find("prompt: this server's context is 10 tokens") == 0);
  CHECK(questions == 0);
}

TEST_CASE("Encoding ends soon after its request is no longer wanted", "[actors]") {
  const TextEncoder encoder(support::byte_tokenizer(), kNoLimits);
  std::string words;
  for (int i = 0; i < 50'000; ++i) words += " word";
  int questions = 0;
  auto request = ask(words);
  request.prompts.assign(3, words);
  const auto encoded = encoder.encode(request, [&] { return ++questions < 5; });
  REQUIRE_FALSE(encoded.has_value());
  CHECK(encoded.error().code == ErrorCode::kCancelled);
  CHECK(questions <= 6);
}

TEST_CASE("A session that ends while its prompt is encoded waits for the outcome", "[actors]") {
  uint64_t now = 1'000'000'000;
  Telemetry telemetry{[&] { return now; }};
  CancelBoard board;
  const SessionContext context{support::byte_tokenizer(), [&] { return now; }, &telemetry, &board};
  const Recorder recorder;
  SessionCore core({7}, now, recorder.sink(), context);
  CHECK(core.on_abort({ErrorCode::kCancelled, "gone", {}}).empty());
  REQUIRE(recorder.last<Failed>());
  CHECK_FALSE(core.finished());  // its credit is still taken
  CHECK(core.on_abort({ErrorCode::kCancelled, "gone", {}}).empty());
  CHECK_FALSE(core.on_encoded({ask("abc"), encoding_stopped()}));
  CHECK(core.finished());
  CHECK(recorder.events().size() == 1);
}

TEST_CASE("Prompts of clients that are gone are not encoded", "[actors][property]") {
  const auto seed = GENERATE(range(0u, 20u));
  CAPTURE(seed);
  SystemLab lab(lab_config(), alphabet_factory(), seed);
  lab.settle();
  const Hops hops;
  std::vector<runtime::RequestId> ids;
  const Recorder recorder;
  for (int i = 0; i < 4; ++i) {
    const auto id = lab->submit(ask("a"), recorder.sink());
    REQUIRE(id.has_value());
    ids.push_back(*id);
  }
  for (const auto id : ids) lab->abort(id);
  CHECK(lab.open() == 4);
  lab.settle();
  for (const auto id : ids) CHECK_FALSE(hops.has(id, "text_worker.encode"));
  CHECK(recorder.all<Failed>().size() == 4);
  CHECK(lab.open() == 0);
}

TEST_CASE("A deadline also ends a request whose prompt waits to be encoded", "[actors][property]") {
  const auto seed = GENERATE(range(0u, 30u));
  CAPTURE(seed);
  SystemLab lab(lab_config(), alphabet_factory(), seed);
  lab.settle();
  const Hops hops;
  const Recorder recorder;
  auto request = ask("a");
  request.deadline_ms = 5;
  const auto id = lab->submit(std::move(request), recorder.sink());
  REQUIRE(id.has_value());
  for (unsigned i = 0; i < seed % 3; ++i) lab.step();  // to the gateway, then to the session
  const bool encoded = hops.has(*id, "text_worker.encode");
  lab.advance(milliseconds(6));
  lab.settle();
  REQUIRE(recorder.last<Failed>());
  CHECK(recorder.last<Failed>()->error.code == ErrorCode::kTimeout);
  CHECK(hops.has(*id, "text_worker.encode") == encoded);
  CHECK(recorder.protocol_error(1) == "");
  CHECK(lab.open() == 0);
}

TEST_CASE("Deadlines leave no timers behind", "[actors][property]") {
  SystemLab lab(lab_config(), alphabet_factory(), GENERATE(range(0u, 5u)));
  lab.settle();
  const Recorder recorder;
  auto far = ask("0", 400);
  far.sampling.ignore_eos = true;
  far.deadline_ms = 7ull * 24 * 3600 * 1000;
  REQUIRE(lab->submit(far, recorder.sink()).has_value());
  for (int i = 0; i < 20; ++i) {
    auto near = ask("0", 400);
    near.sampling.ignore_eos = true;
    near.deadline_ms = 2;
    REQUIRE(lab->submit(near, recorder.sink()).has_value());
    for (int j = 0; j < 40; ++j) lab.step();
    lab.advance(milliseconds(3));
    for (int j = 0; j < 20; ++j) lab.step();
    CHECK(lab.timers() <= 8);
  }
  lab.settle();
  lab.advance(milliseconds(61'000));
  lab.settle();
  CHECK(lab.open() == 0);
  CHECK(lab.timers() == 0);
}

TEST_CASE("An arrival behind the loss of the engine fails with it", "[actors]") {
  SystemLab lab(lab_config(), alphabet_factory());
  lab.settle();
  const Recorder recorder;
  caf::anon_send(lab.gateway(), Boxed(EngineLost{{ErrorCode::kInternal, "it broke", {}}}));
  REQUIRE(lab->submit(ask("a"), recorder.sink()).has_value());
  lab.settle();
  REQUIRE(recorder.last<Failed>());
  CHECK(recorder.last<Failed>()->error.message == "it broke");
  CHECK(recorder.protocol_error(1) == "");
  CHECK(lab.open() == 0);
}
