// The move log of real schedules: replayed it is clean, and damage of any kind is noticed.
#include <filesystem>
#include <fstream>
#include <random>

#include "memory/move_log_file.hpp"
#include "scheduler_world.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

using namespace runtime_test;
using memory::MoveKind;
using memory::MoveRecord;

struct Recorded {
  memory::MoveGeometry geometry;
  std::vector<MoveRecord> moves;
};

// Prompts that share beginnings in a small memory: hits, donations, evictions, moves, retractions.
Recorded record(uint64_t seed) {
  Settings s = settings(5, 60, 8, 64);
  s.cache.unified = true;
  World world(s);
  world.move_log.emplace();
  std::mt19937_64 rng(seed);
  for (int i = 0; i < 12; ++i) {
    std::vector<TokenId> prompt(70 + rng() % 80, 3);
    for (size_t p = 64 * (rng() % 3); p < prompt.size(); ++p)
      prompt[p] = static_cast<TokenId>(rng() % kVocab);
    world.submit_one(prompt, 1 + static_cast<uint32_t>(rng() % 20));
    for (uint64_t steps = rng() % 12; steps > 0; --steps) world.step();
    if (rng() % 5 == 0) world.abort({1 + rng() % world.last_id});
  }
  world.drain();
  return {world.cache.move_geometry(), *world.move_log};
}

std::optional<memory::MoveViolation> first_violation(const Recorded& log) {
  memory::MoveChecker checker(log.geometry, true);
  for (const MoveRecord& record : log.moves) {
    if (auto violation = checker.take(record)) return violation;
  }
  const auto left = checker.finish();
  return left.empty() ? std::nullopt : std::optional(left.front());
}

void renumber(std::vector<MoveRecord>& moves) {
  for (size_t i = 0; i < moves.size(); ++i) moves[i].number = i + 1;
}

// What may be lost without a trace in the rest: a snapshot that nobody was given, a move of a block
// that nobody names again.
bool matters(const Recorded& log, size_t at) {
  const MoveRecord& lost = log.moves[at];
  if (lost.move == MoveKind::kMove) {
    return std::any_of(log.moves.begin() + static_cast<long>(at) + 1, log.moves.end(),
                       [&](const MoveRecord& later) {
                         return later.block == lost.block &&
                                (later.source.index == lost.source.index ||
                                 later.target.index == lost.source.index ||
                                 later.target.physical == lost.source.physical);
                       });
  }
  if (lost.move != MoveKind::kSnapshot) return true;
  for (size_t i = at + 1; i < log.moves.size(); ++i) {
    const MoveRecord& later = log.moves[i];
    if (later.move == MoveKind::kDonate && later.block == memory::BlockKind::kState &&
        later.source.index == lost.target.index &&
        later.source.generation == lost.target.generation)
      return later.position == lost.position;
  }
  return false;
}

}  // namespace

TEST_CASE("the move log of a run is clean, and tells of every kind of move", "[runtime][moves]") {
  std::map<MoveKind, int> seen;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    const Recorded log = record(seed);
    const auto violation = first_violation(log);
    CHECK((violation ? memory::to_text(*violation) : "") == "");
    for (const MoveRecord& move : log.moves) ++seen[move.move];
  }
  for (int kind = 0; kind <= static_cast<int>(MoveKind::kFree); ++kind) {
    CAPTURE(memory::name_of(static_cast<MoveKind>(kind)));
    CHECK(seen[static_cast<MoveKind>(kind)] > 0);
  }
}

TEST_CASE("a lost record is noticed by its number, and by what it leaves", "[runtime][moves]") {
  const Recorded whole = record(7);
  for (size_t at = 0; at < whole.moves.size(); ++at) {
    Recorded log = whole;
    log.moves.erase(log.moves.begin() + static_cast<long>(at));
    const auto by_number = first_violation(log);
    CAPTURE(at, memory::name_of(whole.moves[at].move));
    if (at + 1 < whole.moves.size()) {
      REQUIRE(by_number);
      REQUIRE(by_number->rule == "order");
      REQUIRE(by_number->number == at + 2);
    }
    renumber(log.moves);
    if (matters(whole, at)) REQUIRE(first_violation(log));
  }
}

TEST_CASE("two records in the wrong order are noticed", "[runtime][moves]") {
  const Recorded whole = record(8);
  std::mt19937_64 rng(8);
  for (int i = 0; i < 300; ++i) {
    Recorded log = whole;
    const size_t a = rng() % log.moves.size(), b = rng() % log.moves.size();
    if (a == b) continue;
    std::swap(log.moves[a], log.moves[b]);
    CAPTURE(a, b);
    REQUIRE(first_violation(log));
  }
}

TEST_CASE("a changed slot, page, place or position is noticed", "[runtime][moves]") {
  const Recorded whole = record(9);
  std::mt19937_64 rng(9);
  for (int i = 0; i < 500; ++i) {
    Recorded log = whole;
    const size_t at = rng() % log.moves.size();
    MoveRecord& record = log.moves[at];
    const bool has_source = record.source.generation != 0, has_target = record.target.generation;
    if (!has_source && !has_target) continue;
    memory::BlockPlace& place = has_target ? record.target : record.source;
    const auto other = static_cast<uint32_t>(1 + rng() % 3);
    switch (rng() % 3) {
      case 0:
        place.index += other;
        break;
      case 1:
        place.generation += other;
        break;
      default:
        place.physical += other;
    }
    CAPTURE(at, memory::name_of(record.move));
    REQUIRE(first_violation(log));
  }
  for (const MoveKind kind : {MoveKind::kRestore, MoveKind::kWrite, MoveKind::kAppend,
                              MoveKind::kSnapshot, MoveKind::kDonate, MoveKind::kEnd}) {
    Recorded log = whole;
    const auto found = std::find_if(log.moves.begin(), log.moves.end(),
                                    [&](const MoveRecord& move) { return move.move == kind; });
    CAPTURE(memory::name_of(kind));
    REQUIRE(found != log.moves.end());
    found->position += 64;
    REQUIRE(first_violation(log));
  }
}

TEST_CASE("the end of a log is checked as it is found", "[runtime][moves]") {
  const Recorded whole = record(10);
  for (const size_t from : {whole.moves.size() / 4, whole.moves.size() / 2}) {
    memory::MoveChecker checker(whole.geometry, false);
    for (size_t i = from; i < whole.moves.size(); ++i) {
      const auto violation = checker.take(whole.moves[i]);
      CHECK((violation ? memory::to_text(*violation) : "") == "");
    }
    CHECK(checker.totals().records == whole.moves.size() - from);
  }
}

TEST_CASE("a move log comes back from its file, and says what is wrong with another",
          "[runtime][moves]") {
  const Recorded whole = record(11);
  const support::TemporaryDirectory folder;
  const std::string path = folder.file("moves");
  {
    memory::MoveLogWriter writer(path, whole.geometry);
    for (const MoveRecord& move : whole.moves) writer.write(move);
  }
  CHECK(memory::is_move_log(path));
  auto read = memory::read_move_log(path);
  REQUIRE(read.has_value());
  CHECK(read->records == whole.moves);
  CHECK_FALSE(first_violation({read->geometry, read->records}));

  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 10);  // cut off
  read = memory::read_move_log(path);
  REQUIRE(read.has_value());
  CHECK(read->records.size() == whole.moves.size() - 1);

  std::ofstream(path) << "something else entirely, and long enough to be a header of a move log, "
                         "which it is not";
  CHECK_FALSE(memory::is_move_log(path));
  CHECK(memory::read_move_log(path).error().message ==
        path + ": is no move log of sluice-serve --move-log");
  std::filesystem::remove(path);
  CHECK(memory::read_move_log(path).error().message == path + ": No such file or directory");
  CHECK_THROWS_WITH(memory::MoveLogWriter("/nonexistent/moves", whole.geometry),
                    "move_log: cannot write /nonexistent/moves: No such file or directory");
}
