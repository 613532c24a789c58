#include "runtime/checkpoint_planner.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/base/verify.hpp"

namespace runtime {
namespace {

constexpr uint32_t kRecurrenceChunk = 64;  // rows of one chunk of the KDA prefill
constexpr uint32_t kSlotsMax = 2;

}  // namespace

CheckpointPlanner::CheckpointPlanner(uint32_t page_tokens, uint32_t chunk_ends)
    : grid_(std::lcm(kRecurrenceChunk, page_tokens)), chunk_ends_(chunk_ends) {
  VERIFY(page_tokens > 0);
}

void CheckpointPlanner::wanted(const Course& course, uint32_t begin, uint32_t end,
                               std::vector<Wanted>& out) const {
  out.clear();
  const auto passes = [&](uint32_t position) { return begin < position && position <= end; };
  const auto add = [&](uint32_t position, bool rolling, uint32_t yields = 0) {
    const auto is_there = [&](const Wanted& other) { return other.position == position; };
    if (std::none_of(out.begin(), out.end(), is_there)) out.push_back({position, rolling, yields});
  };
  if (begin >= course.tokens) {  // decode
    if (floor(end) > begin) add(floor(end), true);
    return;
  }
  if (passes(course.branch) && course.branch % grid_ == 0) add(course.branch, false);
  const uint32_t last = last_before(course.tokens);
  if (passes(last)) add(last, false);
  // No prompt that ends here can use it, but one that goes on does.
  if (end == course.tokens && end % grid_ == 0 && course.limit > course.tokens) add(end, true);
  if (end >= course.tokens || chunk_ends_ == 0) return;
  const uint32_t spacing = std::max(grid_, (course.tokens - course.start) / (chunk_ends_ + 1));
  const uint32_t chunk_end = floor(end);
  if (!passes(chunk_end) || chunk_end < uint64_t{course.planted} + spacing) return;
  add(chunk_end, false, (last > end ? 1 : 0) + (course.branch > end ? 1 : 0));
}

uint32_t CheckpointPlanner::useful_slots(uint32_t consumed, uint32_t limit) const {
  return std::min((floor(limit) - floor(std::min(consumed, limit))) / grid_, kSlotsMax);
}

}  // namespace runtime
