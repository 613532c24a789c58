// What a model knows: bits per byte of held-out text, and how often its greedy answers to held-out
// tasks are well formed and right.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/train/text_source.hpp"

namespace runtime {

struct EvaluationOptions {
  std::string model;   // Hugging Face directory with a tokenizer
  std::string adapter;  // directory of an adapter to it; empty: the model alone
  std::string corpus;   // directory that `corpus` wrote
  std::string task;     // in place of a corpus: only this task, see tasks/
  uint64_t seed = 0;   // of the tasks
  uint32_t tasks = 400;
  uint64_t text_tokens = 200000;  // read at most, of each package
  uint32_t context = 2048;        // tokens a document is cut into
  uint32_t answer_tokens = 400;   // longest answer
  unsigned threads = 2;
};

struct SourceScore {
  // Of text: nats that its tokens cost, and the bytes they stand for.
  double nats = 0;
  uint64_t tokens = 0, bytes = 0;
  // Of tasks.
  uint32_t tasks = 0, well_formed = 0, right = 0;

  double bits_per_byte() const;
};
using Scores = std::array<SourceScore, kTextSourceNames.size()>;

// All text together, or all tasks.
SourceScore total(const Scores& scores, bool examples);

// `progress` is told what is going on. Throws std::runtime_error naming what is wrong.
Scores evaluate_model(const EvaluationOptions& options,
                      const std::function<void(const std::string&)>& progress);

}  // namespace runtime
