// A request as the server saw it from its arrival to its end, and the record that is made of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/trace/request_record.hpp"
#include "runtime/request.hpp"
#include "runtime/shared_tokens.hpp"

namespace net {

struct FinishedRequest {
  struct Choice {
    std::vector<runtime::TokenId> ids;
    uint32_t tokens = 0;
    std::string finish;  // as RecordedChoice's
  };
  runtime::GenerateRequest asked;
  std::vector<runtime::SharedTokens> prompts;  // encoded
  std::vector<Choice> choices;                 // choice index = prompt index * n + j
  uint32_t cached_tokens = 0;
  double arrival_s = 0, first_token_s = 0, end_s = 0;  // as RequestRecord's
};

// How a server records.
struct RecordStyle {
  uint32_t block_tokens = 64;
  bool hashed = false;
  // Hashes depend on it. Where content is not to be guessed from its hash it is drawn at random and
  // told nobody.
  uint64_t secret = 0;
};

RequestRecord record_of(FinishedRequest request, const RecordStyle& style);

}  // namespace net
