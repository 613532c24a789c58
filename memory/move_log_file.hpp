// A move log as a file: a header, then the records as they are in memory (little-endian). Fixed
// records cost the scheduler a copy and no formatting, and a file that was cut off is readable up
// to its last whole record.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "memory/move_log.hpp"

namespace memory {

// Invariant: after flush() the file holds every record written. After an error it says so once on
// stderr, and takes no more.
class MoveLogWriter {
 public:
  // Throws std::runtime_error naming the file.
  MoveLogWriter(const std::string& path, const MoveGeometry& geometry);
  ~MoveLogWriter();
  MoveLogWriter(const MoveLogWriter&) = delete;
  MoveLogWriter& operator=(const MoveLogWriter&) = delete;

  void write(const MoveRecord& record) {
    if (!file_) return;
    waiting_.push_back(record);
    if (waiting_.size() == kBatch) put();
  }
  void flush();

 private:
  static constexpr size_t kBatch = 1024;  // records: 64 KiB
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void put();

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<MoveRecord> waiting_;
};

struct MoveLogContents {
  MoveGeometry geometry;
  std::vector<MoveRecord> records;
};

// Errors name the file and what is wrong with it.
kernels::Result<MoveLogContents> read_move_log(const std::string& path);
bool is_move_log(const std::string& path);  // by its first bytes

}  // namespace memory
