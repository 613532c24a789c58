// After which positions of a sequence its state is worth saving. A checkpoint belongs to an exact
// multiple of the grid; in one pass a prefill saves every position its request needs, and decode
// rolls one checkpoint along.
#pragma once

#include <cstdint>
#include <vector>

namespace runtime {

// Plain arithmetic on positions; it knows nothing of slots. Invariant: every position it names is a
// multiple of grid().
class CheckpointPlanner {
 public:
  // `chunk_ends`: the most checkpoints a prefill plants besides the branch point and its last one.
  explicit CheckpointPlanner(uint32_t page_tokens, uint32_t chunk_ends = 4);

  // lcm(64, page_tokens): a recurrence over chunks of 64 and whole pages can both be cut there.
  uint32_t grid() const { return grid_; }
  // The deepest checkpoint a prompt of `tokens` can restore from and still compute a row.
  uint32_t last_before(uint32_t tokens) const { return tokens == 0 ? 0 : floor(tokens - 1); }

  // What a planned row must know of its admission.
  struct Course {
    uint32_t start = 0;    // the first position this admission computes
    uint32_t tokens = 0;   // known at its start: below it is prefill
    uint32_t limit = 0;    // positions of a whole life
    uint32_t branch = 0;   // where the cache asked for a checkpoint; 0 = nowhere
    uint32_t planted = 0;  // the deepest checkpoint restored or planned so far
  };
  struct Wanted {
    uint32_t position = 0;
    bool rolling = false;  // kept until a later one or the end; else donated as soon as it is there
    uint32_t yields = 0;   // slots that must stay free for better ones further on
    bool operator==(const Wanted&) const = default;
  };
  // The positions in (begin, end] worth a slot when a row computes [begin, end), best first.
  void wanted(const Course& course, uint32_t begin, uint32_t end, std::vector<Wanted>& out) const;

  // Slots beside the working one that positions (consumed, limit] can make use of: one to write
  // while another waits for its result or for the end.
  uint32_t useful_slots(uint32_t consumed, uint32_t limit) const;

 private:
  uint32_t floor(uint32_t position) const { return position / grid_ * grid_; }
  uint32_t grid_, chunk_ends_;
};

}  // namespace runtime
