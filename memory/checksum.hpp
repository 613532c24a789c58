// A fast checksum of bytes that left the device, and a digest of files: four independent lanes of
// multiply and rotate, so that it runs at the speed of memory. Each step is a bijection of its
// lane, so any change of a single word changes the sum. It does not resist a forger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace memory {

// Continues from `seed`: the sum of several pieces depends on where they are cut.
uint64_t checksum(std::span<const std::byte> bytes, uint64_t seed = 0);

}  // namespace memory
