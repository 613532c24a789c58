// Which requests may share prefixes: those of one namespace.
#pragma once

#include <cstdint>
#include <string_view>

#include "actors/service.hpp"

namespace actors {

// FNV-1a, its bits mixed once more so that near texts lie far apart.
inline uint64_t mixed_hash(std::string_view text, uint64_t basis) {
  uint64_t hash = basis ^ 0xcbf29ce484222325u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccdu;
  return hash ^ (hash >> 33);
}

// Goes up whenever the kernels or the model compute other bytes from the same weights.
inline constexpr uint64_t kArithmeticVersion = 1;

// What must be equal for equal tokens to have equal states and KV rows, in this process or another.
inline uint64_t arithmetic_id(const ServiceInfo& info) {
  uint64_t id = mixed_hash("arithmetic", info.weights_digest + kArithmeticVersion);
  for (const std::string_view part :
       {std::string_view(info.kernel_target), std::string_view(info.device),
        std::string_view(info.kv_dtype)})
    id = mixed_hash(part, id);
  return id;
}

inline uint64_t name_space_of(std::string_view cache_salt, uint64_t arithmetic_id) {
  return mixed_hash(cache_salt, arithmetic_id);
}

}  // namespace actors
