// Reads the two files of a tokenizer. Every complaint names the file and the line (tiktoken.model)
// or the key (tokenizer_config.json), what stood there and what would be right.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/request.hpp"

namespace runtime {

// tiktoken.model: one "BASE64 RANK" a line. Returns the bytes by rank; an unused rank is empty.
// Throws std::runtime_error for a bad line, a token or rank that comes twice, or a missing single
// byte.
std::vector<std::string> read_tiktoken_model(const std::string& path);

// tokenizer_config.json: `added_tokens_decoder` maps an id to {"content": name}. The ids lie past
// `base_ids`. Those that the file leaves out below its largest id are named
// "<|reserved_token_ID|>".
std::map<TokenId, std::string> read_special_tokens(const std::string& path, TokenId base_ids);

}  // namespace runtime
