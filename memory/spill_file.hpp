// A file of copies of states and KV pages, so that a server that starts again is warm. It counts
// only as a whole: whatever does not match, from the header's first field to the last byte's
// checksum, makes all of it unusable.
//
// Layout (cereal's binary archives, and raw bytes): magic, version and SpillHeader; then per copy a
// SpillRecord and the copy's bytes; then a closing record with the number of copies and a sum over
// the header and all records. The most valuable copies come first, and each behind those that it
// needs, so that a reader with less memory reads as far as it can.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/result.hpp"
#include "memory/commands.hpp"
#include "memory/prefix_hash.hpp"

namespace memory {

// What must be equal for a copy's bytes to mean the same.
struct SpillHeader {
  uint64_t arithmetic_id = 0;  // weights, dtypes, kernels
  uint64_t state_bytes = 0, page_bytes = 0;
  uint32_t page_tokens = 0, grid = 0;
  bool operator==(const SpillHeader&) const = default;
};

struct SpillRecord {
  BlockKind kind = BlockKind::kState;
  PrefixPoint at;
  uint64_t checksum = 0;  // of the copy's bytes
};

std::string spill_path(const std::string& directory);

// Writes beside the path and renames at the end, so that a file of that name is always whole. (It
// is not forced to the disk: what a power failure leaves is told by its checksums.)
class SpillWriter {
 public:
  SpillWriter(std::string path, const SpillHeader& header);
  ~SpillWriter();  // without finish(): nothing remains
  SpillWriter(const SpillWriter&) = delete;
  SpillWriter& operator=(const SpillWriter&) = delete;

  // False: the file cannot be written; the rest is in vain.
  bool add(const SpillRecord& record, std::span<const std::byte> bytes);
  kernels::Result<uint64_t> finish();  // the file's size

 private:
  void put(const std::string& part);

  std::string path_, temporary_;
  std::ofstream out_;
  uint64_t sum_ = 0, copies_ = 0, bytes_ = 0;
};

class SpillReader {
 public:
  // Reads the file from end to end. kNotFound: there is none; any other error names the file and
  // what does not match.
  static kernels::Result<SpillReader> open(const std::string& path, const SpillHeader& expected);

  const std::vector<SpillRecord>& records() const { return records_; }
  uint64_t bytes_of(const SpillRecord& record) const;
  // False: the file changed since it was opened.
  bool read(size_t record, std::byte* target);

 private:
  SpillReader() = default;
  std::optional<std::string> get(size_t bytes);     // and adds them to the sum
  std::string verify(const SpillHeader& expected);  // empty: all is well
  std::string verify_copies();
  bool bytes_match(const SpillRecord& record);  // those that come next

  SpillHeader header_;
  std::ifstream in_;
  std::vector<SpillRecord> records_;
  std::vector<std::streamoff> offsets_;  // of the records' bytes
  uint64_t sum_ = 0;
  std::vector<std::byte> buffer_;  // one copy
};

}  // namespace memory
