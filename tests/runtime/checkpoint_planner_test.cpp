// Which positions a row saves: the branch point, the last grid position an identical prompt can
// use, chunk ends under the cap, and one rolling checkpoint in decode.
#include "runtime/checkpoint_planner.hpp"

#include <catch2/catch.hpp>
#include <set>

namespace {

using runtime::CheckpointPlanner;
using Wanted = CheckpointPlanner::Wanted;
using List = std::vector<Wanted>;

List wanted(const CheckpointPlanner& planner, const CheckpointPlanner::Course& course,
            uint32_t begin, uint32_t end) {
  List out{{7, true}};  // what was there before must not matter
  planner.wanted(course, begin, end, out);
  return out;
}

}  // namespace

TEST_CASE("The grid is the least common multiple of the KDA chunk and the page", "[runtime]") {
  CHECK(CheckpointPlanner(1).grid() == 64);
  CHECK(CheckpointPlanner(16).grid() == 64);
  CHECK(CheckpointPlanner(64).grid() == 64);
  CHECK(CheckpointPlanner(128).grid() == 128);
  CHECK(CheckpointPlanner(64).last_before(128) == 64);
  CHECK(CheckpointPlanner(64).last_before(129) == 128);
  CHECK(CheckpointPlanner(64).last_before(0) == 0);
}

TEST_CASE("One pass saves the branch point first, then the last grid position before the end",
          "[runtime]") {
  const CheckpointPlanner planner(64);
  CHECK(wanted(planner, {0, 300, 400, 128, 0}, 0, 300) == List{{128, false}, {256, false}});
  CHECK(wanted(planner, {0, 300, 400, 0, 0}, 0, 300) == List{{256, false}});
  CHECK(wanted(planner, {128, 300, 400, 256, 128}, 128, 300) == List{{256, false}});
  CHECK(wanted(planner, {0, 60, 70, 0, 0}, 0, 60).empty());
  // A branch that is no multiple of the grid cannot be planted.
  CHECK(wanted(planner, {0, 300, 400, 100, 0}, 0, 300) == List{{256, false}});
}

TEST_CASE("A position is saved by the one row that passes it", "[runtime]") {
  const CheckpointPlanner planner(64, 0);
  const CheckpointPlanner::Course course{0, 300, 400, 128, 0};
  CHECK(wanted(planner, course, 0, 127).empty());
  CHECK(wanted(planner, course, 127, 128) == List{{128, false}});
  CHECK(wanted(planner, course, 128, 255).empty());
  CHECK(wanted(planner, course, 255, 300) == List{{256, false}});
}

TEST_CASE("A prompt that ends on the grid saves the step before it, and keeps its end for later",
          "[runtime]") {
  const CheckpointPlanner planner(64);
  CHECK(wanted(planner, {0, 128, 140, 0, 0}, 0, 128) == List{{64, false}, {128, true}});
  // Nothing follows: no prompt could use it.
  CHECK(wanted(planner, {0, 128, 128, 0, 0}, 0, 128) == List{{64, false}});
}

TEST_CASE("Chunk ends are spread evenly under the cap", "[runtime]") {
  const CheckpointPlanner planner(64, 3);
  CheckpointPlanner::Course course{0, 4001, 4100, 0, 0};
  std::vector<uint32_t> planted;
  for (uint32_t begin = 0; begin < course.tokens; begin += 200) {
    const uint32_t end = std::min(begin + 200, course.tokens);
    for (const Wanted& each : wanted(planner, course, begin, end)) {
      CHECK(each.position % 64 == 0);
      CHECK(!each.rolling);
      course.planted = std::max(course.planted, each.position);
      planted.push_back(each.position);
    }
  }
  CHECK(planted == std::vector<uint32_t>{1152, 2176, 3200, 3968});
}

TEST_CASE("A chunk end leaves slots for the better checkpoints that are still to come",
          "[runtime]") {
  const CheckpointPlanner planner(64);
  CHECK(wanted(planner, {0, 1000, 1100, 512, 0}, 200, 300) == List{{256, false, 2}});
  CHECK(wanted(planner, {0, 1000, 1100, 512, 256}, 500, 600) ==
        List{{512, false, 0}, {576, false, 1}});
  CHECK(wanted(planner, {0, 1000, 1100, 0, 0}, 200, 300) == List{{256, false, 1}});
}

TEST_CASE("Decode rolls one checkpoint over the multiples of the grid", "[runtime]") {
  const CheckpointPlanner planner(64);
  const CheckpointPlanner::Course course{0, 100, 400, 0, 64};
  std::set<uint32_t> seen;
  for (uint32_t position = 100; position < 400; ++position) {
    for (const Wanted& each : wanted(planner, course, position, position + 1)) {
      CHECK(each.rolling);
      CHECK(each.position == position + 1);
      seen.insert(each.position);
    }
  }
  CHECK(seen == std::set<uint32_t>{128, 192, 256, 320, 384});
}

TEST_CASE("No slot is asked for by a sequence that passes no grid position", "[runtime]") {
  const CheckpointPlanner planner(64);
  CHECK(planner.useful_slots(0, 63) == 0);
  CHECK(planner.useful_slots(0, 64) == 1);
  CHECK(planner.useful_slots(0, 1000) == 2);
  CHECK(planner.useful_slots(64, 127) == 0);
  CHECK(planner.useful_slots(63, 127) == 1);
  CHECK(planner.useful_slots(200, 127) == 0);
}
