// One example for each rule of the scheduler core; random histories are in
// scheduler_property_test.cpp.
#include "scheduler_world.hpp"

namespace {

using namespace runtime_test;
using runtime::FinishReason;

std::vector<TokenId> tokens(size_t count) {
  std::vector<TokenId> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = static_cast<TokenId>((i * 7 + 3) % kVocab);
  return all;
}

const runtime::Forward& forward_of(const runtime::StepPlan& plan) {
  return std::get<runtime::Forward>(plan.commands.back());
}

bool same_as_alone(const World& world, SequenceId id) {
  return world.lives.at(id).output == run_alone(world.lives.at(id).asked).output;
}

uint32_t closes_in(const runtime::StepPlan& plan) {
  uint32_t count = 0;
  for (const auto& command : plan.commands)
    count += std::holds_alternative<runtime::Close>(command) ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("a sequence yields max_tokens tokens and finishes by length without a ghost row",
          "[runtime][scheduler]") {
  World world(settings(2, 20, 4, 16));
  const SequenceId id = world.submit_one(tokens(5), 7);
  world.drain();
  CHECK(world.end_of(id).reason == FinishReason::kLength);
  CHECK(world.end_of(id).output_tokens == 7);
  CHECK(world.end_of(id).prompt_tokens == 5);
  CHECK(world.lives.at(id).output.size() == 7);
  CHECK(same_as_alone(world, id));
  CHECK(world.lives.at(id).rows_planned ==
        7);  // the prompt, then six inputs: the seventh token is never an input
  CHECK(world.scheduler.stats().ghost_rows_total == 0);
  CHECK(world.scheduler.stats().generation_tokens_total == 7);
  CHECK(world.scheduler.stats().prompt_tokens_total == 5);
}

TEST_CASE("the plan after next is sent before the first result is known", "[runtime][scheduler]") {
  World world(settings(2, 20, 4, 16));
  const SequenceId id = world.submit_one(tokens(5), 7);
  world.serve_memory();
  REQUIRE(world.to_worker.size() == 2);
  const auto& prefill = forward_of(world.to_worker[0]).rows.at(0);
  const auto& decode = forward_of(world.to_worker[1]).rows.at(0);
  CHECK(prefill.sequence == id);
  CHECK(prefill.start.has_value());
  CHECK(prefill.position == 0);
  CHECK(prefill.count == 5);
  CHECK(prefill.sample);
  CHECK(!decode.start);
  CHECK(decode.position == 5);
  CHECK(decode.count == 1);
  CHECK(decode.sample);
  world.drain();
}

TEST_CASE(
    "an end id finishes the sequence, is counted but is no token of the output, and its next row "
    "is a ghost",
    "[runtime][scheduler]") {
  World world(settings(2, 40, 4, 16));
  const auto prompt = tokens(3);
  const SequenceId probe = world.submit_one(prompt, 6);
  world.drain();
  const std::vector<TokenId> free_run = world.lives.at(probe).output;
  const TokenId end = free_run[3];
  const auto first =
      static_cast<uint32_t>(std::find(free_run.begin(), free_run.end(), end) - free_run.begin());

  runtime::NewSequence sequence;
  sequence.sequence = {77};
  sequence.prompt = prompt;
  sequence.max_tokens = 6;
  sequence.sampling.ignore_eos = true;
  sequence.sampling.stop_ids = {end};
  world.submit({{77}, {sequence}, 0, 0});
  world.drain();
  CHECK(world.end_of({77}).reason == FinishReason::kStop);
  CHECK(world.end_of({77}).stop_id == end);
  CHECK(world.end_of({77}).output_tokens == first + 1);
  CHECK(world.lives.at({77}).output ==
        std::vector<TokenId>(free_run.begin(), free_run.begin() + first));
  CHECK(world.scheduler.stats().ghost_rows_total == 1);
}

TEST_CASE("ignore_eos passes over the model's end ids but not over the client's stop ids",
          "[runtime][scheduler]") {
  for (uint32_t length = 1; length < 12; ++length) {
    World world(settings(2, 60, 4, 16));
    const SequenceId ignoring = world.submit_one(tokens(length), 30, 0, true);
    const SequenceId obeying = world.submit_one(tokens(length), 30, 0, false);
    world.drain();
    CHECK(world.end_of(ignoring).output_tokens == 30);
    const auto& all = world.lives.at(ignoring).output;
    const auto first = std::find(all.begin(), all.end(), 0);
    CHECK(world.lives.at(obeying).output == std::vector<TokenId>(all.begin(), first));
    CHECK((world.end_of(obeying).reason == FinishReason::kStop) == (first != all.end()));
  }
}

TEST_CASE("decode rows come first and prefill fills the rest of the step", "[runtime][scheduler]") {
  World world(settings(4, 60, 4, 8));
  const SequenceId decoding = world.submit_one(tokens(2), 30);
  world.serve_memory();
  world.run_plan();
  const SequenceId late = world.submit_one(tokens(20), 3);
  world.serve_memory();
  world.deliver_result();
  const auto& rows = forward_of(world.last_plan).rows;
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].sequence == decoding);
  CHECK(rows[0].count == 1);
  CHECK(rows[1].sequence == late);
  CHECK(rows[1].count == 7);
  CHECK(!rows[1].sample);
  world.drain();
  CHECK(same_as_alone(world, decoding));
  CHECK(same_as_alone(world, late));
}

TEST_CASE("prefill moves on though decode rows alone would fill every step",
          "[runtime][scheduler]") {
  World world(settings(6, 200, 4, 3));
  std::vector<SequenceId> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(world.submit_one(tokens(1), 30));
  const SequenceId last = world.submit_one(tokens(10), 1);
  int steps = 0;
  while (world.lives.at(last).finished.empty()) {
    REQUIRE(++steps < 40);
    world.step();
  }
  for (const SequenceId id : ids)
    CHECK(world.lives.at(id).output.size() > 3);  // and decode rows take turns
  world.drain();
}

TEST_CASE("max_tokens 0 reads the prompt and samples nothing", "[runtime][scheduler]") {
  World world(settings(2, 20, 4, 4));
  runtime::NewSequence sequence;
  sequence.sequence = {5};
  sequence.prompt = tokens(11);
  sequence.prompt_logprobs = true;
  world.submit({{5}, {sequence}, 0, 0});
  world.drain();
  CHECK(world.end_of({5}).reason == FinishReason::kLength);
  CHECK(world.end_of({5}).output_tokens == 0);
  REQUIRE(world.lives.at({5}).prompts.size() == 1);
  const auto& joined = world.lives.at({5}).prompts[0].prompt;
  REQUIRE(joined.size() == 10);  // three chunks, one list
  const Solo solo = run_alone(sequence, {});
  for (size_t i = 0; i < joined.size(); ++i)
    CHECK(joined[i].chosen.logprob == solo.prompt_logprobs[i]);
}

TEST_CASE("a higher priority is admitted first, and one priority in order of arrival",
          "[runtime][scheduler]") {
  World world(settings(1, 40, 4, 16));
  const SequenceId a = world.submit_one(tokens(3), 2);
  const SequenceId b = world.submit_one(tokens(3), 2);
  const SequenceId c = world.submit_one(tokens(3), 2);
  const SequenceId urgent = world.submit_one(tokens(3), 2, 5);
  std::vector<SequenceId> order;
  while (world.step()) {
    for (const auto& [id, life] : world.lives) {
      if (!life.finished.empty() && std::find(order.begin(), order.end(), id) == order.end())
        order.push_back(id);
    }
  }
  CHECK(order == std::vector<SequenceId>{a, urgent, b, c});
}

TEST_CASE("what can never fit is refused at once, naming the limit and the numbers",
          "[runtime][scheduler]") {
  Settings s = settings(2, 10, 4, 16);
  World world(s);
  auto message = [&](size_t prompt, uint32_t max_tokens) {
    const SequenceId id = world.submit_one(tokens(prompt), max_tokens);
    const auto& end = world.end_of(id);
    CHECK(end.reason == FinishReason::kError);
    REQUIRE(end.error.has_value());
    CHECK(end.error->code == kernels::ErrorCode::kInvalid);
    return end.error->message;
  };
  CHECK(message(0, 5) == "the prompt is empty: it needs at least one token");
  CHECK(message(150, 51) ==
        "prompt of 150 tokens plus max_tokens 51 exceeds the context length of 200 tokens");
  CHECK(message(200, 1) ==
        "prompt of 200 tokens leaves no room for output in the context length of 200 tokens");
  CHECK(message(201, 0) ==
        "prompt of 201 tokens leaves no room for output in the context length of 200 tokens");
  CHECK(message(30, 12) ==
        "prompt of 30 tokens plus max_tokens 12 needs 11 KV pages, the memory holds 10 beside one "
        "state");
  CHECK(message(4, 4294967295u).find("exceeds the context length") != std::string::npos);
  const SequenceId fits = world.submit_one(tokens(30), 11);
  CHECK(world.to_cache.size() == 1);  // only this one asked for anything
  world.drain();
  CHECK(world.end_of(fits).output_tokens == 11);
}

TEST_CASE("one sequence that cannot fit refuses its whole request", "[runtime][scheduler]") {
  World world(settings(2, 10, 4, 16));
  runtime::NewSequence good, bad;
  good.sequence = {1};
  good.prompt = tokens(3);
  good.max_tokens = 2;
  bad = good;
  bad.sequence = {2};
  bad.max_tokens = 1000;
  world.submit({{1}, {good, bad}, 0, 0});
  CHECK(world.end_of({1}).error->code == kernels::ErrorCode::kInvalid);
  CHECK(world.end_of({2}).error->code == kernels::ErrorCode::kInvalid);
  CHECK(world.scheduler.idle());
}

TEST_CASE("the sequences of one request are admitted one by one", "[runtime][scheduler]") {
  World world(settings(2, 40, 4, 16));
  runtime::Submit submit;
  submit.request = {1};
  for (uint64_t i = 1; i <= 5; ++i) {
    runtime::NewSequence sequence;
    sequence.sequence = {i};
    sequence.prompt = tokens(4);
    sequence.max_tokens = 3;
    sequence.sampling.seed = i;
    sequence.sampling.ignore_eos = true;
    submit.sequences.push_back(sequence);
  }
  world.submit(submit);
  CHECK(world.scheduler.stats().queued == 5);
  world.serve_memory();
  CHECK(world.scheduler.stats().running == 2);
  CHECK(world.scheduler.stats().queued == 3);
  world.drain();
  for (uint64_t i = 1; i <= 5; ++i) CHECK(same_as_alone(world, {i}));
}

TEST_CASE("a row that is not finite ends its sequence alone", "[runtime][scheduler]") {
  World world(settings(3, 60, 4, 16));
  const SequenceId good = world.submit_one(tokens(4), 10);
  const SequenceId sick = world.submit_one(tokens(4), 10);
  world.worker.nan_at[sick] = 7;
  world.drain();
  CHECK(world.end_of(sick).reason == FinishReason::kError);
  CHECK(world.end_of(sick).error->code == kernels::ErrorCode::kInternal);
  CHECK(world.end_of(sick).error->message ==
        "the model produced a value that is not finite at position 6");
  CHECK(world.lives.at(sick).output.size() == 3);
  CHECK(world.end_of(good).reason == FinishReason::kLength);
  CHECK(same_as_alone(world, good));
}

TEST_CASE("a plan closes records when nothing else runs, so that none lingers",
          "[runtime][scheduler]") {
  World world(settings(2, 20, 4, 16));
  const SequenceId id = world.submit_one(tokens(3), 1);
  world.serve_memory();
  world.run_plan();
  world.deliver_result();
  CHECK(world.end_of(id).reason == FinishReason::kLength);
  REQUIRE(world.to_worker.size() == 1);
  REQUIRE(world.to_worker[0].commands.size() == 1);
  CHECK(closes_in(world.to_worker[0]) == 1);
  CHECK(world.scheduler.idle());
  world.drain();
}

TEST_CASE("an idle scheduler answers a tick with nothing", "[runtime][scheduler]") {
  World world(settings(2, 20, 4, 16));
  world.handle(runtime::Tick{});
  world.handle(runtime::Abort{{123}});
  world.handle(runtime::StopSequence{{123}});
  world.handle(memory::CacheReply{{}, {memory::Refused{{123}, 7}}, {}});
  CHECK(world.to_cache.empty());
  CHECK(world.to_worker.empty());
  CHECK(world.scheduler.idle());
  CHECK(!world.scheduler.next_deadline_us());
}
