// An engine with its own sequences, for measurements: the plans are those of the server, but nobody
// schedules. Invariant: blocks are bound once, sequence i always uses state slot i.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/counter_random.hpp"
#include "runtime/engine.hpp"

namespace runtime {

class BenchEngine {
 public:
  struct Size {
    uint32_t sequences = 1;       // most that are open at once
    uint32_t pages = 1;           // of all of them together
    uint32_t chunk_tokens = 512;  // rows of one step
  };
  BenchEngine(kernels::Device& device, std::unique_ptr<Model> model, const Size& size);

  // Closes what is open, then opens `count` sequences, each with `tokens` random tokens. The first
  // `depth` of them count as read: their pages hold what memory held.
  void open(uint32_t count, uint32_t tokens, uint32_t depth);
  // Reads the tokens that are not read yet, in chunks, and samples the next of each sequence.
  void prefill();
  // One step: each sequence consumes one token and samples the next.
  void decode();

 private:
  struct Sequence {
    SequenceId id;
    uint32_t position = 0;        // tokens consumed
    uint32_t tokens = 0;          // of the prompt
    uint32_t pages = 0;           // sent to the engine
    std::vector<TokenId> prompt;  // until its first row is sent
  };
  void bind_all();
  PlanRow row(uint32_t index, uint32_t count);
  void forward(std::vector<PlanRow> rows);

  Size size_;
  uint32_t vocab_, page_tokens_;
  std::unique_ptr<Engine> engine_;
  std::vector<Sequence> sequences_;  // those that are open
  CounterRandom random_;
  uint64_t drawn_ = 0, opened_ = 0, step_ = 0;
  uint32_t next_page_ = 0;
};

}  // namespace runtime
