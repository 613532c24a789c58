// Writes the tokenizer of a random model: tiktoken.model with a full vocabulary and
// tokenizer_config.json with the special tokens. The last 256 ids are special, in the order of the
// real vocabulary.
#pragma once

#include <cstdint>
#include <string>

namespace runtime {

// vocab: 512 (one token per byte) or more: longer byte sequences then fill the ranks in between.
// Throws std::runtime_error.
void write_tokenizer_files(const std::string& directory, uint32_t vocab);

}  // namespace runtime
