// What an event log is made of: a file that begins with a magic number and a header and goes on
// with records, binary, through cereal. One that ends within a record is read up to there.
#pragma once

#include <cereal/archives/binary.hpp>
#include <cereal/types/string.hpp>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>

#include "memory/checksum.hpp"
#include "memory/field_archive.hpp"

namespace memory {

class EventLogWriter {
 public:
  // Throws std::runtime_error naming the file if it cannot be written.
  template <class Header>
  EventLogWriter(const std::string& path, uint64_t magic, const Header& header)
      : path_(path), out_(path, std::ios::binary | std::ios::trunc) {
    if (!out_) throw std::runtime_error("event_log: cannot write " + path);
    write(magic, header);
  }
  template <class... Values>
  void write(const Values&... values) {
    cereal::BinaryOutputArchive archive(out_);
    archive(values...);
  }
  // What was written outlives a crash. Says so once when it cannot be.
  void flush() {
    if (out_.flush() || told_) return;
    told_ = true;
    std::fprintf(stderr, "event log: %s cannot be written; it ends here\n", path_.c_str());
  }

 private:
  std::string path_;
  std::ofstream out_;
  bool told_ = false;
};

class EventLogReader {
 public:
  // Throws std::runtime_error naming the file if it is not of this kind.
  template <class Header>
  EventLogReader(const std::string& path, uint64_t magic, Header& header)
      : in_(path, std::ios::binary) {
    if (!in_) throw std::runtime_error(path + ": cannot be read");
    uint64_t found = 0;
    if (!read(found) || found != magic || !read(header))
      throw std::runtime_error(path + ": is no event log of this kind or version");
  }
  // False at the end, wherever in a record it lies.
  template <class... Values>
  bool read(Values&... values) {
    try {
      cereal::BinaryInputArchive archive(in_);
      archive(values...);
      return true;
    } catch (const cereal::Exception&) {
      return false;
    }
  }

 private:
  std::ifstream in_;
};

// Of the values as bytes, to compare decisions.
class EventDigest {
 public:
  template <class Value>
  void add(const Value& value) {
    std::ostringstream bytes;
    cereal::BinaryOutputArchive archive(bytes);
    archive(value);
    value_ = checksum(std::as_bytes(std::span(bytes.view())), value_);
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

struct EventLogCheck {
  uint64_t answers = 0;    // of the core, that were compared
  std::string difference;  // the first one, in words; empty: none
};

}  // namespace memory
