#include "net/trace/trace_file.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>

namespace net {
namespace {

struct CloseGzip {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

}  // namespace

TraceFile read_trace_file(const std::string& path) {
  if (std::filesystem::is_directory(path))
    throw std::runtime_error(path + ": is a directory; expected a file");
  errno = 0;
  // Reads what is not compressed as it is.
  const std::unique_ptr<gzFile_s, CloseGzip> file(gzopen(path.c_str(), "rb"));
  if (file == nullptr)
    throw std::runtime_error(path + ": cannot be read (" + std::strerror(errno) + ")");
  TraceFile read{path, {}};
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    const int count = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    int code = Z_OK;
    const char* const problem = gzerror(file.get(), &code);
    // Z_BUF_ERROR at the end: the file is cut off.
    if (count < 0 || (count == 0 && code == Z_BUF_ERROR))
      throw std::runtime_error(path + ": cannot be unpacked (" +
                               (code == Z_ERRNO ? std::strerror(errno) : problem) + ")");
    if (count == 0) return read;
    read.bytes.append(buffer.data(), static_cast<size_t>(count));
  }
}

void bad_row(const TraceFile& file, size_t line, const std::string& problem) {
  throw std::runtime_error(file.path + ":" + std::to_string(line) + ": " + problem);
}

size_t line_of_byte(const TraceFile& file, size_t offset) {
  const auto end =
      file.bytes.begin() + static_cast<std::ptrdiff_t>(std::min(offset, file.bytes.size()));
  return 1 + static_cast<size_t>(std::count(file.bytes.begin(), end, '\n'));
}

bool TraceLines::next() {
  while (!rest_.empty()) {
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    text_ = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    if (text_.ends_with('\r')) text_.remove_suffix(1);
    if (text_.find_first_not_of(" \t") != text_.npos) return true;
  }
  return false;
}

}  // namespace net
