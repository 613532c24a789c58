#include "runtime/host_arena.hpp"

#include <utility>

#include "kernels/base/verify.hpp"
#include "memory/checksum.hpp"

namespace runtime {

std::byte* HostArena::add(memory::HostBlock block, size_t bytes) {
  const auto [place, fresh] = copies_.try_emplace(block.value);
  VERIFY(fresh);
  Copy& copy = place->second;
  copy.bytes = bytes;
  auto& spare = spare_[bytes];
  if (spare.empty()) {
    if (bytes_ + bytes > bytes_max_) trim(bytes);
    copy.data.reset(new std::byte[bytes]);  // not zeroed: it is filled at once
    bytes_ += bytes;
  } else {
    copy.data = std::move(spare.back());
    spare.pop_back();
  }
  return copy.data.get();
}

void HostArena::trim(size_t spared) {
  for (auto& [bytes, blocks] : spare_) {
    if (bytes == spared) continue;
    bytes_ -= bytes * blocks.size();
    blocks.clear();
  }
}

void HostArena::seal(memory::HostBlock block) {
  Copy& copy = copies_.at(block.value);
  copy.checksum = memory::checksum(copy.span());
}

void HostArena::seal(memory::HostBlock block, uint64_t checksum) {
  copies_.at(block.value).checksum = checksum;
}

const HostArena::Copy& HostArena::at(memory::HostBlock block) const {
  const auto found = copies_.find(block.value);
  VERIFY(found != copies_.end());
  return found->second;
}

bool HostArena::intact(memory::HostBlock block) const {
  const Copy& copy = at(block);
  return memory::checksum(copy.span()) == copy.checksum;
}

void HostArena::discard(memory::HostBlock block) {
  const auto found = copies_.find(block.value);
  VERIFY(found != copies_.end());
  spare_[found->second.bytes].push_back(std::move(found->second.data));
  copies_.erase(found);
}

std::byte* HostArena::mutable_data(memory::HostBlock block) {
  return copies_.at(block.value).data.get();
}

}  // namespace runtime
