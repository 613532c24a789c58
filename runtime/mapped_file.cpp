#include "runtime/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace runtime {

MappedFile::MappedFile(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    throw std::runtime_error(path + ": cannot be opened (" + std::strerror(errno) + ")");
  struct stat info = {};
  const bool regular = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  if (regular) size_ = static_cast<size_t>(info.st_size);
  void* data = size_ == 0 ? nullptr : ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
  const int error = errno;
  ::close(file);
  if (!regular) throw std::runtime_error(path + ": is not a regular file");
  if (data == MAP_FAILED)
    throw std::runtime_error(path + ": cannot be mapped (" + std::strerror(error) + ")");
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace runtime
