// Strings of random tokens in which every token that can be known from what stands before it is
// learnt. Conversations teach to look back with a handful of tokens each; here half of all do,
// and without that much practice a small model does not find out that it can.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/train/tasks/task_random.hpp"

namespace runtime {

struct RecallText {
  std::vector<uint16_t> tokens;
  std::vector<uint8_t> mask;  // 1: follows from what stands before it
};

// Of tokens below `ranks`, at most `length` long; it depends on the random source alone.
RecallText make_recall(TaskRandom& random, uint32_t ranks, size_t length);

}  // namespace runtime
