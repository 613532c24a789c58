// Turns a corpus and generated examples into a dataset.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "runtime/train/tasks/example_shares.hpp"
#include "runtime/train/text_source.hpp"

namespace runtime {

struct DatasetOptions {
  std::string corpus;     // directory that `corpus` wrote
  std::string task;       // in place of a corpus: all examples are of this task, see tasks/
  std::string tokenizer;  // directory with tiktoken.model and tokenizer_config.json
  std::string file;
  uint64_t seed = 0;      // of the examples
  uint32_t examples = 0;  // generated ones
  ExampleShares shares = default_example_shares();
  uint32_t recalls = 0;        // texts of random tokens, see tasks/recall.hpp
  size_t recall_length = 256;  // tokens, at most
  bool held_out = false;  // the held-out documents, and held-out examples
};

struct SourceSummary {
  size_t documents = 0, tokens = 0, learnt = 0;
  size_t bytes = 0;  // of text, markup left out
};

using DatasetSummary = std::array<SourceSummary, kTextSourceNames.size()>;

// Documents of the corpus come whole and end with [EOS]; every token of theirs is learnt. As in the
// template, nothing stands before the first. Of an example what the assistant produces is learnt.
// Throws std::runtime_error.
DatasetSummary build_dataset(const DatasetOptions& options);

}  // namespace runtime
