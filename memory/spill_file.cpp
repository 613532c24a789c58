#include "memory/spill_file.hpp"

#include <algorithm>
#include <cereal/archives/binary.hpp>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "memory/checksum.hpp"

namespace memory {
namespace {

constexpr uint64_t kMagic = 0x6c6970732d65636c;  // "lce-spil" in file order
constexpr uint32_t kVersion = 1;
constexpr uint8_t kEnd = 0xff;  // in place of a record's kind: the closing record

struct Start {  // of the file
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  SpillHeader header;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(magic, version, header.arithmetic_id, header.state_bytes, header.page_bytes,
            header.page_tokens, header.grid);
  }
};

struct Entry {  // a record, or the closing one: there the position counts copies
  uint8_t kind = kEnd;
  PrefixPoint at;
  uint64_t checksum = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(kind, at.prefix.a, at.prefix.b, at.needs.a, at.needs.b, at.name_space, at.position,
            checksum);
  }
};

template <class Part>
std::string packed(Part part) {
  std::ostringstream out;
  cereal::BinaryOutputArchive archive(out);
  archive(part);
  return std::move(out).str();
}

template <class Part>
Part unpacked(const std::string& bytes) {
  std::istringstream in(bytes);
  cereal::BinaryInputArchive archive(in);
  Part part;
  archive(part);
  return part;
}

// The binary archive writes every part of one type with as many bytes.
template <class Part>
size_t packed_size() {
  static const size_t size = packed(Part()).size();
  return size;
}

std::string closing(uint64_t copies, uint64_t sum) {
  Entry end;
  end.at.position = static_cast<uint32_t>(copies);
  end.checksum = sum;
  return packed(end);
}

uint64_t sum_of(const std::string& part, uint64_t sum) {
  return checksum(std::as_bytes(std::span(part)), sum);
}

kernels::Error file_error(const std::string& path, const std::string& what) {
  return {kernels::ErrorCode::kInvalid, path + ": " + what, {}};
}

}  // namespace

std::string spill_path(const std::string& directory) { return directory + "/host-cache.spill"; }

// ---- writing ----

SpillWriter::SpillWriter(std::string path, const SpillHeader& header)
    : path_(std::move(path)),
      temporary_(path_ + ".partial"),
      out_(temporary_, std::ios::binary | std::ios::trunc) {
  put(packed(Start{kMagic, kVersion, header}));
}

SpillWriter::~SpillWriter() {
  out_.close();
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void SpillWriter::put(const std::string& part) {
  sum_ = sum_of(part, sum_);
  out_.write(part.data(), static_cast<std::streamsize>(part.size()));
  bytes_ += part.size();
}

bool SpillWriter::add(const SpillRecord& record, std::span<const std::byte> bytes) {
  put(packed(Entry{static_cast<uint8_t>(record.kind), record.at, record.checksum}));
  out_.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  bytes_ += bytes.size();
  ++copies_;
  return out_.good();
}

kernels::Result<uint64_t> SpillWriter::finish() {
  put(closing(copies_, sum_));
  out_.close();
  if (out_.fail()) return file_error(temporary_, "cannot be written");
  std::error_code error;
  std::filesystem::rename(temporary_, path_, error);
  if (error) return file_error(path_, "cannot be replaced: " + error.message());
  return bytes_;
}

// ---- reading ----

uint64_t SpillReader::bytes_of(const SpillRecord& record) const {
  return record.kind == BlockKind::kState ? header_.state_bytes : header_.page_bytes;
}

std::optional<std::string> SpillReader::get(size_t bytes) {
  std::string part(bytes, '\0');
  in_.read(part.data(), static_cast<std::streamsize>(bytes));
  if (!in_.good()) return std::nullopt;
  return part;
}

bool SpillReader::bytes_match(const SpillRecord& record) {
  buffer_.resize(bytes_of(record));
  in_.read(reinterpret_cast<char*>(buffer_.data()), static_cast<std::streamsize>(buffer_.size()));
  return in_.good() && checksum(buffer_) == record.checksum;
}

std::string SpillReader::verify_copies() {
  for (;;) {
    const auto part = get(packed_size<Entry>());
    if (!part) return "is cut off after " + std::to_string(records_.size()) + " copies";
    const Entry entry = unpacked<Entry>(*part);
    if (entry.kind == kEnd) {
      if (*part != closing(records_.size(), sum_))
        return "has changed: its sum over all records does not match";
      return in_.peek() == std::ifstream::traits_type::eof() ? "" : "goes on behind its end";
    }
    sum_ = sum_of(*part, sum_);
    if (entry.kind > static_cast<uint8_t>(BlockKind::kPage))
      return "holds a copy of an unknown kind, " + std::to_string(entry.kind);
    const SpillRecord record{static_cast<BlockKind>(entry.kind), entry.at, entry.checksum};
    offsets_.push_back(in_.tellg());
    if (!bytes_match(record))
      return "has changed: the bytes of copy " + std::to_string(records_.size()) +
             " do not match their checksum";
    records_.push_back(record);
  }
}

std::string SpillReader::verify(const SpillHeader& expected) {
  const auto part = get(packed_size<Start>());
  if (!part) return "is too short for a header";
  const Start start = unpacked<Start>(*part);
  if (start.magic != kMagic) return "is no file of cached states";
  if (start.version != kVersion)
    return "has the format version " + std::to_string(start.version) + ", this program reads " +
           std::to_string(kVersion);
  if (start.header.arithmetic_id != expected.arithmetic_id)
    return "was written with other weights, or by another kernel target";
  if (start.header != expected) return "was written with another page size or model geometry";
  header_ = expected;
  sum_ = sum_of(*part, 0);
  return verify_copies();
}

kernels::Result<SpillReader> SpillReader::open(const std::string& path,
                                               const SpillHeader& expected) {
  if (!std::filesystem::exists(path))
    return kernels::Error{kernels::ErrorCode::kNotFound, path + ": there is none", {}};
  SpillReader reader;
  reader.in_.open(path, std::ios::binary);
  if (!reader.in_) return file_error(path, "cannot be opened");
  const std::string trouble = reader.verify(expected);
  if (!trouble.empty()) return file_error(path, trouble);
  reader.in_.clear();
  return reader;
}

bool SpillReader::read(size_t record, std::byte* target) {
  in_.seekg(offsets_.at(record));
  in_.read(reinterpret_cast<char*>(target),
           static_cast<std::streamsize>(bytes_of(records_.at(record))));
  return in_.good();
}

}  // namespace memory
