// Writes a tokenizer's two files: tiktoken.model with the byte sequences by rank, and
// tokenizer_config.json with the special tokens. The last 256 ids are special, in the order of the
// real vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace runtime {

// ranks: the bytes of each token, distinct, all single bytes among them; the special ids follow.
// Throws std::runtime_error naming the file.
void write_tokenizer_files(const std::string& directory, const std::vector<std::string>& ranks);

// The tokenizer of a random model. vocab: 512 (one token per byte) or more: longer byte sequences
// then fill the ranks in between. Throws std::runtime_error.
void write_tokenizer_files(const std::string& directory, uint32_t vocab);

}  // namespace runtime
