// Makes a tokenizer from a corpus: tiktoken.model and tokenizer_config.json, with K3's special
// tokens after the ranks.
#pragma once

#include <cstdint>
#include <string>

namespace runtime {

struct TokenizerOptions {
  std::string corpus;          // directory with train.jsonl
  std::string directory;       // created if missing
  uint32_t ranks = 4096;       // 256 or more
  uint32_t examples = 10'000;  // generated ones, so that markup and JSON get good tokens
};

// Throws std::runtime_error. Returns how many bytes of text the vocabulary was learnt from.
size_t train_tokenizer(const TokenizerOptions& options);

}  // namespace runtime
