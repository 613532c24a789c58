// A model with the real memory semantics and none of the arithmetic. A slot holds an
// order-sensitive hash of every token consumed since it was cleared, and how many those were; a
// page holds one hash per position. The logits of a row depend on the slot and on every page row
// before it, so a wrong slot, page, position, order or a missing Clear changes the output; each is
// also counted as a violation.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "runtime/model.hpp"

namespace support {

constexpr uint64_t toy_mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u + b;
  x ^= x >> 29;
  x *= 0x94D049BB133111EBu;
  return x ^ (x >> 32);
}

struct ToyOptions {
  uint32_t vocab_size = 24;
  uint32_t page_tokens = 4;
  float spread = 3.0f;           // logits lie in [-spread, spread)
  runtime::TokenId poison = -1;  // rows at or after this token have NaN logits
  std::shared_ptr<uint64_t> violations = std::make_shared<uint64_t>(0);  // counted here
};

class ToyModel final : public runtime::Model {
 public:
  using Options = ToyOptions;
  explicit ToyModel(const Options& options) : options_(options), violations_(options.violations) {}

  uint32_t vocab_size() const override { return options_.vocab_size; }
  runtime::CacheGeometry geometry() const override {
    return {sizeof(State), options_.page_tokens * sizeof(uint64_t), options_.page_tokens};
  }
  uint64_t weight_bytes() const override { return 0; }
  std::shared_ptr<const uint64_t> violations() const { return violations_; }  // outlives the model

  void forward(const runtime::ForwardBatch& batch, const runtime::CacheMemory& memory) override {
    wanted_.clear();
    size_t next = 0;  // in logit_rows
    uint32_t row = 0;
    for (const kernels::Segment& segment : batch.view.segments) {
      if (segment.row_begin != row) ++*violations_;
      std::byte* slot = memory.state_base + segment.slot * memory.state_stride;
      State state;
      std::memcpy(&state, slot, sizeof state);
      if (state.consumed != segment.position) ++*violations_;
      for (uint32_t i = 0; i < segment.row_count; ++i, ++row) {
        const uint32_t position = segment.position + i;
        const runtime::TokenId token = batch.tokens[row];
        if (position >= segment.write_from) {
          write_page_row(batch, memory, segment, position,
                         toy_mix(state.hash, static_cast<uint64_t>(token)));
        }
        uint64_t seen = 0;  // what the pages say was consumed
        for (uint32_t p = 0; p <= position; ++p)
          seen = toy_mix(seen, read_page_row(batch, memory, segment, p));
        state = step(state, token);
        if (seen != state.hash) ++*violations_;
        for (const kernels::KdaArgs::Capture& capture : batch.captures) {
          if (capture.row != row) continue;
          if (capture.slot == segment.slot) ++*violations_;
          std::memcpy(memory.state_base + capture.slot * memory.state_stride, &state, sizeof state);
        }
        if (next == batch.logit_rows.size() || batch.logit_rows[next] != row) continue;
        wanted_.push_back({toy_mix(state.hash, seen), state.poisoned});
        ++next;
      }
      std::memcpy(slot, &state, sizeof state);
    }
    if (next != batch.logit_rows.size() || row != batch.view.row_count) ++*violations_;
  }

  void logits(size_t first, size_t count, float* out) override {
    for (size_t i = 0; i < count; ++i) {
      const Wanted& wanted = wanted_.at(first + i);
      write_logits(wanted.hash, wanted.poisoned, out + i * options_.vocab_size);
    }
  }

  // The oracle: logits after these tokens, without slots or pages.
  std::vector<float> logits_after(const std::vector<runtime::TokenId>& tokens) const {
    State state;
    for (const runtime::TokenId token : tokens) state = step(state, token);
    std::vector<float> logits(options_.vocab_size);
    write_logits(toy_mix(state.hash, state.hash), state.poisoned, logits.data());
    return logits;
  }

 private:
  struct State {
    uint64_t hash = 0, consumed = 0, poisoned = 0;
  };

  State step(State state, runtime::TokenId token) const {
    state.hash = toy_mix(state.hash, toy_mix(state.hash, static_cast<uint64_t>(token)));
    ++state.consumed;
    if (token == options_.poison) state.poisoned = 1;
    return state;
  }

  std::byte* page_row(const runtime::ForwardBatch& batch, const runtime::CacheMemory& memory,
                      const kernels::Segment& segment, uint32_t position) const {
    const uint32_t page = batch.view.pages[segment.page_begin + position / options_.page_tokens];
    return memory.page_base + page * memory.page_stride +
           position % options_.page_tokens * sizeof(uint64_t);
  }
  uint64_t read_page_row(const runtime::ForwardBatch& batch, const runtime::CacheMemory& memory,
                         const kernels::Segment& segment, uint32_t position) const {
    uint64_t value;
    std::memcpy(&value, page_row(batch, memory, segment, position), sizeof value);
    return value;
  }
  void write_page_row(const runtime::ForwardBatch& batch, const runtime::CacheMemory& memory,
                      const kernels::Segment& segment, uint32_t position, uint64_t value) const {
    std::memcpy(page_row(batch, memory, segment, position), &value, sizeof value);
  }

  void write_logits(uint64_t hash, uint64_t poisoned, float* logits) const {
    for (uint32_t id = 0; id < options_.vocab_size; ++id) {
      const float unit = static_cast<float>(toy_mix(hash, id) >> 40) * 0x1p-24f;  // [0, 1)
      logits[id] = poisoned != 0 ? std::numeric_limits<float>::quiet_NaN()
                                 : (2.0f * unit - 1.0f) * options_.spread;
    }
  }

  struct Wanted {
    uint64_t hash = 0, poisoned = 0;
  };
  Options options_;
  std::vector<Wanted> wanted_;  // [logit rows] of the last forward
  std::shared_ptr<uint64_t> violations_;
};

}  // namespace support
