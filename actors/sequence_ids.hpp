// A sequence's id names its request and its choice, so that no actor needs a table to find them.
#pragma once

#include <cstdint>

#include "actors/service.hpp"
#include "kernels/base/verify.hpp"
#include "memory/ids.hpp"
#include "runtime/request.hpp"

namespace actors {

static_assert(kChoicesMax <= 1u << 16);

inline memory::SequenceId sequence_of(runtime::RequestId request, uint32_t choice) {
  VERIFY(choice < kChoicesMax);
  return {request.value << 16 | choice};
}
inline runtime::RequestId request_of(memory::SequenceId sequence) { return {sequence.value >> 16}; }
inline uint32_t choice_of(memory::SequenceId sequence) {
  return static_cast<uint32_t>(sequence.value & 0xffff);
}

}  // namespace actors
