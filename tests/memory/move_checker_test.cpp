// Each rule of the move checker, broken once in an otherwise sound log.
#include <catch2/catch.hpp>

#include "memory/move_checker.hpp"

using namespace memory;

namespace {

// Two states of 64 bytes at the low end, four pages of 32 bytes at the high end of 256 bytes; a
// page holds 4 positions.
MoveGeometry geometry() { return {4, {0, 64, 4}, {128, 32, 4}}; }

class Log {
 public:
  explicit Log(bool whole = true) : checker_(geometry(), whole) {}

  // "": fine; else the rule that was broken.
  std::string take(MoveRecord record) {
    record.number = ++number_;
    const auto violation = checker_.take(record);
    if (violation) CHECK(violation->number == number_);
    return violation ? std::string(violation->rule) : "";
  }
  std::string state(MoveKind move, BlockPlace target, uint64_t sequence = 1) {
    MoveRecord record = move_by(move, BlockKind::kState, {sequence});
    record.target = target;
    return take(record);
  }
  std::string page(MoveKind move, BlockPlace target, uint32_t position = 0,
                   uint64_t sequence = 1) {
    MoveRecord record = move_by(move, BlockKind::kPage, {sequence});
    record.target = target;
    record.position = position;
    return take(record);
  }
  std::string write(uint64_t step, uint32_t position, uint32_t count, BlockPlace slot) {
    MoveRecord record = move_by(MoveKind::kWrite, BlockKind::kState, {1});
    record.step = step;
    record.position = position;
    record.count = count;
    record.target = slot;
    return take(record);
  }
  std::string snapshot(uint64_t step, uint32_t position, BlockPlace from, BlockPlace to) {
    MoveRecord record = move_by(MoveKind::kSnapshot, BlockKind::kState, {1});
    record.step = step;
    record.position = position;
    record.source = from;
    record.target = to;
    return take(record);
  }
  std::string done(uint64_t step) {
    MoveRecord record = move_of(MoveKind::kStepDone, BlockKind::kState);
    record.step = step;
    return take(record);
  }
  std::string donate(BlockKind block, BlockPlace source, uint32_t position) {
    MoveRecord record = move_under(MoveKind::kDonate, block, {5});
    record.source = source;
    record.position = position;
    return take(record);
  }
  std::string end(uint32_t position) {
    MoveRecord record = move_by(MoveKind::kEnd, BlockKind::kState, {1});
    record.position = position;
    return take(record);
  }
  std::string free(BlockKind block, BlockPlace source, OwnerKind owner = OwnerKind::kSequence) {
    MoveRecord record = move_by(MoveKind::kFree, block, {1});
    record.owner_kind = owner;
    record.source = source;
    return take(record);
  }
  std::string restore(BlockPlace from, BlockPlace to, uint32_t position, uint64_t sequence) {
    MoveRecord record = move_by(MoveKind::kRestore, BlockKind::kState, {sequence});
    record.source = from;
    record.target = to;
    record.position = position;
    return take(record);
  }
  std::string stage(MoveKind move, BlockPlace source, BlockPlace target, uint32_t position = 4) {
    MoveRecord record = move_under(move, BlockKind::kState, {5});
    record.source = source;
    record.target = target;
    record.position = position;
    return take(record);
  }
  const MoveChecker& checker() const { return checker_; }

 private:
  MoveChecker checker_;
  uint64_t number_ = 0;
};

constexpr BlockPlace kWorking{2, 1, 0}, kSaved{3, 1, 1}, kPage{1, 1, 3};

// Sequence 1 has read positions [0, 4) and saved its state there.
Log started() {
  Log log;
  REQUIRE(log.state(MoveKind::kBind, kWorking) == "");
  REQUIRE(log.state(MoveKind::kBind, kSaved) == "");
  REQUIRE(log.page(MoveKind::kBind, kPage) == "");
  REQUIRE(log.state(MoveKind::kClear, kWorking) == "");
  REQUIRE(log.page(MoveKind::kAppend, kPage) == "");
  REQUIRE(log.write(1, 0, 4, kWorking) == "");
  REQUIRE(log.snapshot(1, 4, kWorking, kSaved) == "");
  return log;
}

// ... and both are the tree's; the sequence has ended.
Log donated() {
  Log log = started();
  REQUIRE(log.done(1) == "");
  REQUIRE(log.donate(BlockKind::kPage, kPage, 0) == "");
  REQUIRE(log.donate(BlockKind::kState, kSaved, 4) == "");
  REQUIRE(log.end(4) == "");
  REQUIRE(log.free(BlockKind::kState, kWorking) == "");
  REQUIRE(log.checker().finish().empty());
  return log;
}

}  // namespace

TEST_CASE("a log must count its records and its steps", "[memory][moves]") {
  MoveChecker checker(geometry(), true);
  MoveRecord record = move_by(MoveKind::kBind, BlockKind::kState, {1});
  record.target = kWorking;
  record.number = 2;
  CHECK(to_text(*checker.take(record)) == "record 2, rule \"order\": number 1 was due");
  CHECK(started().done(2) == "order");
}

TEST_CASE("a block has one place and one owner", "[memory][moves]") {
  CHECK(started().state(MoveKind::kBind, {2, 2, 2}) == "owner");     // held already
  CHECK(started().state(MoveKind::kBind, {1, 1, 1}) == "overlap");   // on another's place
  CHECK(started().state(MoveKind::kBind, {1, 1, 7}) == "place");     // outside the arena
  CHECK(started().state(MoveKind::kBind, {1, 1, 3}) == "overlap");   // on a page's bytes
  CHECK(donated().state(MoveKind::kBind, {2, 1, 0}) == "place");     // a generation twice
  CHECK(started().state(MoveKind::kClear, kSaved, 2) == "owner");    // another's slot
  CHECK(started().write(2, 4, 1, {2, 1, 1}) == "place");             // it lies elsewhere
  CHECK(started().write(2, 4, 1, {2, 2, 0}) == "place");             // a stale id
  CHECK(started().page(MoveKind::kAppend, kPage, 4) == "owner");     // the same page twice
  CHECK(donated().donate(BlockKind::kState, kSaved, 4) == "owner");  // donated twice
}

TEST_CASE("a sequence goes on where its state stands", "[memory][moves]") {
  CHECK(started().write(2, 5, 1, kWorking) == "position");
  CHECK(started().write(2, 4, 1, kWorking) == "place");  // it has no page for position 4
  CHECK(started().end(5) == "position");
  CHECK(started().snapshot(1, 5, kWorking, kSaved) == "position");
  Log log = donated();
  REQUIRE(log.state(MoveKind::kBind, {2, 2, 0}, 2) == "");
  CHECK(log.restore(kSaved, {2, 2, 0}, 8, 2) == "position");
}

TEST_CASE("only what is final is donated, and only a checkpoint is restored", "[memory][moves]") {
  CHECK(started().donate(BlockKind::kState, kSaved, 4) == "final");  // its step is not back
  CHECK(started().donate(BlockKind::kState, kWorking, 4) == "owner");
  CHECK(started().snapshot(1, 4, kWorking, kSaved) == "final");  // two under way to one slot
  Log log = started();
  REQUIRE(log.done(1) == "");
  REQUIRE(log.state(MoveKind::kBind, {1, 1, 2}, 2) == "");
  CHECK(log.restore(kSaved, {1, 1, 2}, 4, 2) == "owner");  // it was never donated
}

TEST_CASE("what was donated is nobody's target until it was freed and bound anew",
          "[memory][moves]") {
  Log log = started();
  REQUIRE(log.done(1) == "");
  REQUIRE(log.donate(BlockKind::kPage, kPage, 0) == "");
  REQUIRE(log.donate(BlockKind::kState, kSaved, 4) == "");
  CHECK(log.snapshot(2, 4, kWorking, kSaved) == "owner");
  CHECK(donated().free(BlockKind::kState, kSaved, OwnerKind::kSequence) == "owner");
}

TEST_CASE("nothing is taken from a sequence that runs, and nothing done by one that ended",
          "[memory][moves]") {
  CHECK(started().free(BlockKind::kState, kWorking) == "end");
  CHECK(started().free(BlockKind::kPage, kPage) == "end");
  CHECK(donated().write(2, 4, 1, kWorking) == "end");
  CHECK(started().state(MoveKind::kClear, kWorking) == "end");
}

TEST_CASE("what is never given back is named at the end", "[memory][moves]") {
  const auto left = started().checker().finish();
  REQUIRE(left.size() == 5);
  CHECK(to_text(left[0]) == "at the end, rule \"left over\": sequence 1 has not ended");
  CHECK(left[1].text == "the result of step 1 is not back");
  CHECK(to_text(left[2]) ==
        "at the end, rule \"left over\": state 2 still belongs to sequence 1");
}

TEST_CASE("a copy to the host keeps its place, one from the host its target", "[memory][moves]") {
  const BlockPlace host{0, 0, 9};
  Log out = donated();
  CHECK(started().stage(MoveKind::kStageOut, kSaved, host) == "owner");
  REQUIRE(out.stage(MoveKind::kStageOut, kSaved, host) == "");
  REQUIRE(out.free(BlockKind::kState, kSaved, OwnerKind::kNode) == "");  // the bytes stay
  CHECK(out.state(MoveKind::kBind, {1, 1, 1}, 2) == "source");
  CHECK(out.stage(MoveKind::kStageOutDone, kSaved, host) == "");
  CHECK(out.stage(MoveKind::kStageOutDone, kSaved, host) == "source");

  Log in = donated();
  const BlockPlace target{2, 2, 0};
  REQUIRE(in.state(MoveKind::kBind, target, 2) == "");
  REQUIRE(in.stage(MoveKind::kStageIn, host, target) == "");
  CHECK(in.state(MoveKind::kClear, target, 2) == "source");
  Log done = donated();
  REQUIRE(done.state(MoveKind::kBind, target, 2) == "");
  CHECK(done.stage(MoveKind::kStageInDone, host, target) == "source");
  REQUIRE(done.stage(MoveKind::kStageIn, host, target) == "");
  REQUIRE(done.stage(MoveKind::kStageInDone, host, target, 8) == "");
  REQUIRE(done.donate(BlockKind::kState, target, 8) == "");
  CHECK(done.checker().totals().slots_cached == 2);
}

TEST_CASE("a sequence may start from what was staged in, and only from that", "[memory][moves]") {
  const BlockPlace target{2, 2, 0};
  Log log = donated();
  REQUIRE(log.state(MoveKind::kBind, target, 2) == "");
  CHECK(log.restore({}, target, 4, 2) == "source");
  Log staged = donated();
  REQUIRE(staged.state(MoveKind::kBind, target, 2) == "");
  REQUIRE(staged.stage(MoveKind::kStageIn, {0, 0, 9}, target) == "");
  REQUIRE(staged.stage(MoveKind::kStageInDone, {0, 0, 9}, target, kNowhere) == "");
  CHECK(staged.restore({}, target, 4, 2) == "");
}

TEST_CASE("a log that begins later is taken as it is found", "[memory][moves]") {
  Log log(false);
  CHECK(log.write(10, 40, 1, kWorking) == "");
  CHECK(log.write(11, 41, 1, kWorking) == "");
  CHECK(log.write(12, 41, 1, kWorking) == "position");
  CHECK(log.free(BlockKind::kState, kSaved, OwnerKind::kNode) == "");
  CHECK(log.free(BlockKind::kState, kSaved, OwnerKind::kNode) == "place");
}
