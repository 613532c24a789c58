// Abort, stop and deadline in every phase of a sequence's life, and retraction under pressure.
#include "runtime/retraction.hpp"
#include "scheduler_world.hpp"

namespace {

using namespace runtime_test;
using runtime::FinishReason;

bool same_as_alone(const World& world, SequenceId id) {
  return world.lives.at(id).output == run_alone(world.lives.at(id).asked).output;
}

runtime::NewSequence sequence_of(uint64_t id, size_t prompt, uint32_t max_tokens) {
  runtime::NewSequence sequence;
  sequence.sequence = {id};
  sequence.prompt = std::vector<TokenId>(prompt, 4);
  sequence.max_tokens = max_tokens;
  sequence.sampling.ignore_eos = true;
  return sequence;
}

void check_aborted(const World& world, SequenceId id, kernels::ErrorCode code) {
  CHECK(world.end_of(id).reason == FinishReason::kAbort);
  REQUIRE(world.end_of(id).error.has_value());
  CHECK(world.end_of(id).error->code == code);
}

}  // namespace

TEST_CASE("an abort is effective in every phase", "[runtime][scheduler]") {
  World world(settings(1, 20, 4, 4));
  const SequenceId other = world.submit_one({1, 2}, 5);
  SequenceId id;
  SECTION("queued") {
    id = world.submit_one({1, 2}, 5);
    world.abort(id);
  }
  SECTION("waiting for a grant: the late grant is given back") {
    world.drain();
    id = world.submit_one({1, 2}, 5);
    world.serve_cache();  // the grant is on its way
    world.abort(id);
  }
  SECTION("waiting for a grant that was not served yet") {
    world.drain();
    id = world.submit_one({1, 2}, 5);
    world.abort(id);
  }
  SECTION("between two chunks of its prompt") {
    world.drain();
    id = world.submit_one(std::vector<TokenId>(15, 1), 5);
    world.serve_memory();
    world.run_plan();
    world.deliver_result();
    world.abort(id);
  }
  SECTION("decoding, with two plans under way") {
    world.drain();
    id = world.submit_one({1, 2}, 12);
    for (int i = 0; i < 4; ++i) world.step();
    REQUIRE(world.forwards_in_flight == 2);
    world.abort(id);
  }
  check_aborted(world, id, kernels::ErrorCode::kCancelled);
  world.abort(id);  // again: nothing happens
  world.drain();    // the world checks that no plan built since names it, and that every block came
                    // back
  CHECK(world.scheduler.stats().aborted_total == 1);
  CHECK(same_as_alone(world, other));
  CHECK(world.admitted == world.given_back);
}

TEST_CASE("an abort ends every sequence of its request and no other", "[runtime][scheduler]") {
  World world(settings(2, 40, 4, 16));
  world.submit({{1}, {sequence_of(1, 3, 9), sequence_of(2, 3, 9), sequence_of(3, 3, 9)}, 0, 0});
  world.submit({{2}, {sequence_of(4, 3, 9)}, 0, 0});
  for (int i = 0; i < 3; ++i) world.step();
  world.handle(runtime::Abort{{1}, kernels::ErrorCode::kUnavailable});
  for (uint64_t i = 1; i <= 3; ++i) check_aborted(world, {i}, kernels::ErrorCode::kUnavailable);
  world.drain();
  CHECK(same_as_alone(world, {4}));
}

TEST_CASE("a stop string found by the session finishes the sequence without error",
          "[runtime][scheduler]") {
  World world(settings(2, 40, 4, 16));
  const SequenceId id = world.submit_one({1, 2, 3}, 20);
  const SequenceId other = world.submit_one({1, 2, 3}, 20);
  for (int i = 0; i < 5; ++i) world.step();
  world.handle(runtime::StopSequence{id});
  CHECK(world.end_of(id).reason == FinishReason::kStop);
  CHECK(!world.end_of(id).stop_id);
  CHECK(!world.end_of(id).error);
  world.drain();
  CHECK(same_as_alone(world, other));
  CHECK(world.scheduler.stats().ghost_rows_total == 2);
}

TEST_CASE("a deadline ends the request with a timeout, whatever event brings the time",
          "[runtime][scheduler]") {
  World world(settings(1, 40, 4, 16));
  world.submit({{1}, {sequence_of(1, 3, 30)}, 0, 500});
  world.submit({{2}, {sequence_of(2, 3, 5)}, 0, 300});
  world.submit({{3}, {sequence_of(3, 3, 5)}, 0, 0});
  CHECK(world.scheduler.next_deadline_us() == 300);
  world.now_us = 299;
  world.handle(runtime::Tick{});
  CHECK(world.lives.at({2}).finished.empty());
  world.now_us = 300;
  world.handle(runtime::Tick{});  // still queued
  check_aborted(world, {2}, kernels::ErrorCode::kTimeout);
  CHECK(world.end_of({2}).error->message == "the request's deadline passed after 0 output tokens");
  CHECK(world.scheduler.next_deadline_us() == 500);
  for (int i = 0; i < 4; ++i) world.step();
  world.now_us = 501;
  world.step();  // a step result brings the time
  check_aborted(world, {1}, kernels::ErrorCode::kTimeout);
  world.drain();
  CHECK(world.end_of({3}).reason == FinishReason::kLength);
  CHECK(!world.scheduler.next_deadline_us());
}

TEST_CASE("a request that arrives past its deadline ends at once", "[runtime][scheduler]") {
  World world(settings(1, 40, 4, 16));
  world.now_us = 1000;
  world.submit({{1}, {sequence_of(1, 3, 30)}, 0, 999});
  check_aborted(world, {1}, kernels::ErrorCode::kTimeout);
  CHECK(world.to_cache.empty());
  world.drain();
}

TEST_CASE("a retracted sequence resumes with the same tokens", "[runtime][scheduler]") {
  World world(settings(3, 12, 2, 8));  // 24 positions for three sequences of up to 22
  std::vector<SequenceId> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(world.submit_one({1, static_cast<TokenId>(i)}, 20));
  world.drain();
  CHECK(world.scheduler.stats().retracted_total > 0);
  CHECK(world.scheduler.stats().recomputed_tokens_total > 0);
  CHECK(world.scheduler.stats().prompt_tokens_total == 6);  // a prompt read twice counts once
  CHECK(world.scheduler.stats().generation_tokens_total == 60);
  for (const SequenceId id : ids) {
    CHECK(same_as_alone(world, id));
    CHECK(world.end_of(id).output_tokens == 20);
  }
  CHECK(world.admitted == world.given_back);
}

TEST_CASE("retraction takes the lowest priority, and never the first", "[runtime][scheduler]") {
  World world(settings(3, 12, 2, 8));
  const SequenceId first = world.submit_one({1, 1}, 20);
  const SequenceId low = world.submit_one({1, 2}, 20, -1);
  const SequenceId high = world.submit_one({1, 3}, 20, 1);
  std::vector<SequenceId> order;
  while (world.step()) {
    for (const auto& [id, life] : world.lives) {
      if (!life.finished.empty() && std::find(order.begin(), order.end(), id) == order.end())
        order.push_back(id);
    }
  }
  CHECK(order.back() == low);
  CHECK(world.scheduler.stats().retracted_total > 0);
  for (const SequenceId id : {first, low, high}) CHECK(same_as_alone(world, id));
}

TEST_CASE(
    "the victim has the lowest priority, then the fewest output tokens, then the latest arrival",
    "[runtime][scheduler]") {
  std::vector<runtime::Sequence> all(5);
  auto make = [&](size_t i, int32_t priority, uint64_t arrival, size_t output) {
    all[i].priority = priority;
    all[i].arrival = arrival;
    all[i].prompt_tokens = 2;
    all[i].output.resize(output);
    return &all[i];
  };
  runtime::Sequence* first = make(0, 0, 1, 0);  // the fewest of all, but the first never yields
  runtime::Sequence* fewest = make(1, 0, 2, 3);
  runtime::Sequence* latest = make(2, 0, 3, 3);
  runtime::Sequence* more = make(3, 0, 4, 4);
  runtime::Sequence* low = make(4, -1, 5, 9);
  using Running = std::vector<runtime::Sequence*>;
  CHECK(runtime::choose_victim(Running{first, fewest, latest, more, low}) == low);
  CHECK(runtime::choose_victim(Running{first, fewest, latest, more}) == latest);
  CHECK(runtime::choose_victim(Running{first, fewest, more}) == fewest);
  CHECK(runtime::choose_victim(Running{first}) == nullptr);
  CHECK(runtime::choose_victim(Running{}) == nullptr);
}

TEST_CASE("admission leaves every running sequence a page to grow into", "[runtime][scheduler]") {
  World world(settings(2, 6, 2, 8));
  const SequenceId grows = world.submit_one({1, 2}, 8);
  world.serve_memory();
  const SequenceId waits = world.submit_one({1, 2, 3, 4, 5}, 3);  // the four free pages would do
  world.serve_memory();
  CHECK(world.scheduler.stats().running == 1);
  world.drain();
  CHECK(world.scheduler.stats().retracted_total == 0);
  CHECK(same_as_alone(world, grows));
  CHECK(same_as_alone(world, waits));
}

TEST_CASE("a retracted sequence does not take back the room it gave", "[runtime][scheduler]") {
  World world(settings(3, 24, 1, 8));
  std::vector<SequenceId> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(world.submit_one({1, static_cast<TokenId>(i)}, 20));
  world.drain(400);
  CHECK(world.scheduler.stats().retracted_total > 0);
  CHECK(world.scheduler.stats().retracted_total < 10);
  for (const SequenceId id : ids) CHECK(same_as_alone(world, id));
}

TEST_CASE("a retracted sequence leaves its latest checkpoint behind and goes on from there",
          "[runtime][scheduler]") {
  World world(settings(8, 19, 16, 64));  // 304 positions for two sequences of up to 189
  world.log.emplace();
  const SequenceId first = world.submit_one(std::vector<TokenId>(70, 1), 120);
  const SequenceId second = world.submit_one(std::vector<TokenId>(70, 2), 120);
  world.drain();
  CHECK(world.scheduler.stats().retracted_total > 0);
  CHECK(same_as_alone(world, first));
  CHECK(same_as_alone(world, second));
  const auto& log = *world.log;
  uint32_t drops = 0, left_behind = 0;
  for (size_t i = 1; i < log.size(); ++i) {
    const auto* drop = std::get_if<memory::Drop>(&log[i]);
    if (drop == nullptr || drop->sequence != second || ++drops > 1) continue;
    const auto* donate = std::get_if<memory::Donate>(&log[i - 1]);
    REQUIRE(donate != nullptr);
    CHECK(donate->ticket == drop->ticket);
    CHECK(donate->position == 128);
    CHECK(!donate->refill);
    ++left_behind;
  }
  CHECK(left_behind == 1);
  CHECK(drops > 1);
}

TEST_CASE("a sequence whose snapshots leave no page to grow into goes on without them",
          "[runtime][scheduler]") {
  Settings s = settings(3, 12, 16, 64);  // as many bytes: of 15 blocks one state and 12 pages run
  s.cache.unified = true;
  World world(s);
  const SequenceId id = world.submit_one(std::vector<TokenId>(100, 1), 91);
  const SequenceId longer = world.submit_one(std::vector<TokenId>(10, 1), 180);
  world.drain();
  CHECK(world.end_of(id).reason == FinishReason::kLength);
  CHECK(world.end_of(longer).reason == FinishReason::kLength);
  CHECK(same_as_alone(world, id));
  CHECK(same_as_alone(world, longer));
}

TEST_CASE(
    "prompt log-probabilities come once though the sequence is retracted while it reads its prompt",
    "[runtime][scheduler]") {
  World world(settings(3, 16, 2, 3));
  const SequenceId old = world.submit_one({1}, 26);
  for (int i = 0; i < 6; ++i) world.step();
  auto late = sequence_of(50, 17, 3);
  late.prompt_logprobs = true;
  world.submit({{50}, {late}, 0, 0});
  world.drain();
  CHECK(world.scheduler.stats().retracted_total > 0);
  REQUIRE(world.lives.at({50}).prompts.size() == 1);
  const Solo solo = run_alone(late, {});
  REQUIRE(world.lives.at({50}).prompts[0].prompt.size() == 16);
  for (size_t i = 0; i < 16; ++i)
    CHECK(world.lives.at({50}).prompts[0].prompt[i].chosen.logprob == solo.prompt_logprobs[i]);
  CHECK(same_as_alone(world, old));
  CHECK(same_as_alone(world, {50}));
}

TEST_CASE("a sequence without its next page sits out and the others go on",
          "[runtime][scheduler]") {
  World world(settings(2, 40, 2, 8));
  const SequenceId slow = world.submit_one({1, 2}, 20);
  world.serve_memory();
  const SequenceId other = world.submit_one({1, 3}, 20);
  world.serve_memory();
  for (int i = 0; i < 12; ++i) {  // the cache manager is asked, and does not answer
    world.run_plan();
    world.deliver_result();
  }
  CHECK(world.lives.at(slow).finished.empty());
  CHECK(world.lives.at(other).finished.empty());
  const size_t stuck_at = world.lives.at(slow).output.size();
  CHECK(world.forwards_in_flight == 0);
  world.drain();
  CHECK(world.lives.at(slow).output.size() > stuck_at);
  CHECK(world.scheduler.stats().retracted_total == 0);
  CHECK(same_as_alone(world, slow));
  CHECK(same_as_alone(world, other));
}

TEST_CASE("decode pages are granted ahead: no step waits for the cache manager",
          "[runtime][scheduler]") {
  for (const uint32_t page_tokens : {1u, 2u, 4u}) {
    World world(settings(1, 64, page_tokens, 8));
    const SequenceId id = world.submit_one({1, 2}, 30);
    world.serve_memory();
    while (world.lives.at(id).finished.empty()) {
      REQUIRE(world.run_plan());
      world.deliver_result();
      if (world.lives.at(id).output.size() < 28)
        REQUIRE(world.forwards_in_flight >= 1);  // one is always under way
      world.serve_memory();                      // the answer arrives a step later
    }
    world.drain();
  }
}

TEST_CASE("a pool that is smaller than promised ends the sequence instead of waiting for ever",
          "[runtime][scheduler]") {
  Settings s = settings(2, 4, 2, 8);
  s.scheduler.pages_max = 40;
  World world(s);
  const SequenceId grows = world.submit_one({1, 2}, 20);
  world.drain();
  CHECK(world.end_of(grows).reason == FinishReason::kError);
  CHECK(world.end_of(grows).error->code == kernels::ErrorCode::kFull);
  const SequenceId large = world.submit_one(std::vector<TokenId>(30, 1), 3);
  world.drain();
  CHECK(world.end_of(large).reason == FinishReason::kError);
}
