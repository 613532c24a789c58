// A file mapped read-only. Invariant: bytes() stays valid and unchanged in place until destruction.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace runtime {

class MappedFile {
 public:
  // Throws std::runtime_error naming the path.
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace runtime
