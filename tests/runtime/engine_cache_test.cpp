// What the engine does for a cache of prefixes: snapshots inside a forward, restore, shared pages,
// moved blocks and blocks that change their kind, on plans written by hand.
#include <catch2/catch.hpp>

#include "runtime/engine.hpp"
#include "runtime/sampler.hpp"
#include "tests/support/toy_model.hpp"

namespace {

using memory::BlockKind;
using runtime::PageId;
using runtime::PlanRow;
using runtime::SlotId;
using runtime::TokenId;
using Tokens = std::vector<TokenId>;

constexpr uint32_t kSlots = 6, kPages = 12, kPageTokens = 4;

class CacheBench {
 public:
  CacheBench() {
    support::ToyOptions options;
    options.page_tokens = kPageTokens;
    auto model = std::make_unique<support::ToyModel>(options);
    violations_ = model->violations();
    oracle_ = std::make_unique<support::ToyModel>(options);
    const auto layout = runtime::EngineLayout::side_by_side(model->geometry(), kSlots, kPages);
    engine_ = std::make_unique<runtime::Engine>(*device_, std::move(model), layout);
  }

  uint64_t violations() const { return *violations_; }
  template <class Command>
  void add(Command command) {
    plan_.commands.emplace_back(std::move(command));
  }
  SlotId slot(uint32_t physical, bool zero = false) {
    const SlotId id{100 + ++last_, 1};
    add(memory::Bind{BlockKind::kState, id.index, id.generation, physical, zero});
    return id;
  }
  PageId page(uint32_t physical, bool zero = false) {
    const PageId id{100 + ++last_, 1};
    add(memory::Bind{BlockKind::kPage, id.index, id.generation, physical, zero});
    return id;
  }
  // Runs one row and returns the token it sampled.
  std::optional<TokenId> run(PlanRow row) {
    add(runtime::Forward{step_++, {std::move(row)}});
    auto result = engine_->run(std::exchange(plan_, {}));
    REQUIRE(result);
    REQUIRE(result->rows.size() == 1);
    return result->rows.front().token;
  }
  TokenId expected(const Tokens& tokens) const {
    runtime::PenaltyCounts counts;
    auto logits = oracle_->logits_after(tokens);
    const runtime::SamplingParams params;
    return *runtime::sample({logits, &params, &counts, static_cast<uint32_t>(tokens.size()), 0});
  }

 private:
  std::unique_ptr<kernels::Device> device_ = kernels::make_cpu_device();
  std::unique_ptr<support::ToyModel> oracle_;
  std::shared_ptr<const uint64_t> violations_;
  std::unique_ptr<runtime::Engine> engine_;
  runtime::StepPlan plan_;
  uint64_t step_ = 0;
  uint32_t last_ = 0;
};

PlanRow first_row(uint64_t sequence, const Tokens& tokens, SlotId slot, std::vector<PageId> pages,
                  uint32_t position, uint32_t shared = 0) {
  PlanRow row;
  row.sequence = {sequence};
  row.start =
      runtime::SequenceStart{{}, tokens, static_cast<uint32_t>(tokens.size()), false, slot, shared};
  row.position = position;
  row.count = static_cast<uint32_t>(tokens.size()) - position;
  row.new_pages = std::move(pages);
  row.sample = true;
  return row;
}

Tokens prefix(const Tokens& tokens, size_t count) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count)};
}

const Tokens kPrompt{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};  // 11 tokens: 2 pages and 3 rows

}  // namespace

TEST_CASE("A snapshot taken inside a forward restores to the state at its position", "[runtime]") {
  for (const uint32_t position : {4u, 8u}) {
    CacheBench bench;
    const SlotId working = bench.slot(2), saved = bench.slot(5);
    const std::vector<PageId> pages{bench.page(7), bench.page(1), bench.page(4)};
    bench.add(memory::Clear{working});
    PlanRow row = first_row(1, kPrompt, working, pages, 0);
    row.snapshots = {{position, saved}};
    CHECK(bench.run(row) == bench.expected(kPrompt));
    // Another prompt with the same beginning goes on from there in its own slot and last pages.
    Tokens other = prefix(kPrompt, position);
    other.insert(other.end(), {8, 8, 8});
    std::vector<PageId> own(pages.begin(), pages.begin() + position / kPageTokens);
    own.push_back(bench.page(9));
    const SlotId second = bench.slot(0);
    bench.add(memory::Restore{saved, second});
    CHECK(bench.run(first_row(2, other, second, own, position, position)) == bench.expected(other));
    PlanRow next;  // the first sequence was not disturbed
    next.sequence = {1};
    next.position = 11;
    next.count = 1;
    next.sample = true;
    Tokens longer = kPrompt;
    longer.push_back(bench.expected(kPrompt));
    CHECK(bench.run(next) == bench.expected(longer));
    CHECK(bench.violations() == 0);
  }
}

TEST_CASE("Rows between the checkpoint and the shared pages' end read those and write none",
          "[runtime]") {
  CacheBench bench;
  const SlotId working = bench.slot(2), saved = bench.slot(5), second = bench.slot(1);
  const std::vector<PageId> pages{bench.page(7), bench.page(1), bench.page(4)};
  bench.add(memory::Clear{working});
  PlanRow row = first_row(1, kPrompt, working, pages, 0);
  row.snapshots = {{4, saved}};
  bench.run(row);
  Tokens other = prefix(kPrompt, 8);
  other.push_back(7);
  SECTION("the same tokens: their rows are what it would have written") {
    bench.add(memory::Restore{saved, second});
    CHECK(bench.run(first_row(2, other, second, {pages[0], pages[1], bench.page(9)}, 4, 8)) ==
          bench.expected(other));
    CHECK(bench.violations() == 0);
  }
  SECTION("other tokens: the pages stay as they were, and the model notices") {
    other[5] = 0;
    bench.add(memory::Restore{saved, second});
    bench.run(first_row(2, other, second, {pages[0], pages[1], bench.page(9)}, 4, 8));
    CHECK(bench.violations() > 0);
  }
}

TEST_CASE("Two snapshots of one row are two states", "[runtime]") {
  CacheBench bench;
  const SlotId working = bench.slot(0), early = bench.slot(1), late = bench.slot(2);
  const std::vector<PageId> pages{bench.page(0), bench.page(1), bench.page(2)};
  bench.add(memory::Clear{working});
  PlanRow row = first_row(1, kPrompt, working, pages, 0);
  row.snapshots = {{8, late}, {4, early}};  // in any order
  bench.run(row);
  uint64_t sequence = 2;
  for (const auto& [slot, position] : {std::pair{early, 4u}, {late, 8u}}) {
    Tokens other = prefix(kPrompt, position);
    other.push_back(2);
    std::vector<PageId> own(pages.begin(), pages.begin() + position / kPageTokens);
    const SlotId second = bench.slot(3 + static_cast<uint32_t>(sequence) % 2);
    own.push_back(bench.page(8 + static_cast<uint32_t>(sequence) % 2));
    bench.add(memory::Restore{slot, second});
    CHECK(bench.run(first_row(sequence++, other, second, own, position, position)) ==
          bench.expected(other));
  }
  CHECK(bench.violations() == 0);
}

TEST_CASE("Moved blocks keep their ids and their bytes", "[runtime]") {
  CacheBench bench;
  const SlotId working = bench.slot(5);
  const std::vector<PageId> pages{bench.page(0), bench.page(1), bench.page(2)};
  bench.add(memory::Clear{working});
  Tokens tokens = kPrompt;
  tokens.push_back(*bench.run(first_row(1, kPrompt, working, pages, 0)));
  bench.add(memory::Move{BlockKind::kState, working.index, working.generation, 5, 0});
  bench.add(memory::Move{BlockKind::kPage, pages[1].index, pages[1].generation, 1, 11});
  bench.add(memory::Move{BlockKind::kPage, pages[2].index, pages[2].generation, 2, 1});
  bench.slot(5, true);  // where it came from has a new owner, who starts with zeros
  bench.page(2, true);
  PlanRow next;
  next.sequence = {1};
  next.position = 11;
  next.count = 1;
  next.sample = true;
  CHECK(bench.run(next) == bench.expected(tokens));
  CHECK(bench.violations() == 0);
}

TEST_CASE("A zeroed block reads as zero whatever it held", "[runtime]") {
  CacheBench bench;
  const SlotId working = bench.slot(0);
  bench.add(memory::Clear{working});
  bench.run(first_row(1, {1, 2, 3}, working, {bench.page(0)}, 0));
  const SlotId again = bench.slot(0, true);  // no Clear: Bind has done its work
  CHECK(bench.run(first_row(2, {5, 6}, again, {bench.page(0)}, 0)) == bench.expected({5, 6}));
  CHECK(bench.violations() == 0);
}
