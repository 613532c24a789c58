// The blocks of a prompt whose tokens are known, as ids: chained hashes, so that equal ids mean
// equal prefixes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/prefix_hash.hpp"
#include "runtime/request.hpp"

namespace net {

// Only whole blocks have one. 53 bits each: every reader of JSON keeps them exact.
std::vector<uint64_t> block_hashes(std::span<const runtime::TokenId> tokens, uint32_t block_tokens,
                                   memory::PrefixHash root);

}  // namespace net
