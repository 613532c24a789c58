#include "memory/move_log_file.hpp"

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace memory {
namespace {

static_assert(std::endian::native == std::endian::little, "move logs are little-endian");

constexpr std::array<char, 8> kMagic = {'s', 'l', 'u', 'i', 'c', 'e', 'm', 'v'};
constexpr uint32_t kVersion = 1;  // of the header and of MoveRecord

struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t record_bytes = sizeof(MoveRecord);
  uint64_t page_tokens = 0;
  std::array<uint64_t, 3> states{}, pages{};  // offset, block_bytes, blocks
};
static_assert(sizeof(Header) == 72);

std::array<uint64_t, 3> packed(const BlockPool::Region& region) {
  return {region.offset, region.block_bytes, region.blocks};
}
BlockPool::Region unpacked(const std::array<uint64_t, 3>& region) {
  return {region[0], region[1], static_cast<uint32_t>(region[2])};
}
bool sound(const std::array<uint64_t, 3>& region) {
  return region[1] > 0 && region[2] > 0 && region[2] < kNowhere &&
         region[0] < uint64_t{1} << 62 && region[1] < (uint64_t{1} << 62) / region[2];
}

kernels::Error unreadable(const std::string& path, const std::string& why) {
  return kernels::invalid(path + ": " + why);
}

}  // namespace

MoveLogWriter::MoveLogWriter(const std::string& path, const MoveGeometry& geometry)
    : path_(path), file_(std::fopen(path.c_str(), "wb")) {
  if (!file_)
    throw std::runtime_error("move_log: cannot write " + path + ": " + std::strerror(errno));
  waiting_.reserve(kBatch);
  Header header;
  header.page_tokens = geometry.page_tokens;
  header.states = packed(geometry.states);
  header.pages = packed(geometry.pages);
  std::fwrite(&header, sizeof header, 1, file_.get());
}

MoveLogWriter::~MoveLogWriter() { flush(); }

void MoveLogWriter::put() {
  const bool whole =
      std::fwrite(waiting_.data(), sizeof(MoveRecord), waiting_.size(), file_.get()) ==
      waiting_.size();
  waiting_.clear();
  if (whole) return;
  std::fprintf(stderr, "move log: %s: %s; it ends here\n", path_.c_str(), std::strerror(errno));
  file_.reset();
}

void MoveLogWriter::flush() {
  if (!file_) return;
  put();
  if (file_) std::fflush(file_.get());
}

bool is_move_log(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::array<char, 8> magic{};
  return in.read(magic.data(), magic.size()) && magic == kMagic;
}

kernels::Result<MoveLogContents> read_move_log(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return unreadable(path, std::strerror(errno));
  Header header;
  if (!in.read(reinterpret_cast<char*>(&header), sizeof header) || header.magic != kMagic)
    return unreadable(path, "is no move log of sluice-serve --move-log");
  if (header.version != kVersion || header.record_bytes != sizeof(MoveRecord)) {
    return unreadable(path, "is a move log of version " + std::to_string(header.version) +
                                ", this program reads version " + std::to_string(kVersion));
  }
  if (header.page_tokens == 0 || header.page_tokens > 1u << 20 || !sound(header.states) ||
      !sound(header.pages)) {
    return unreadable(path, "its header is damaged");
  }
  MoveLogContents log;
  log.geometry = {static_cast<uint32_t>(header.page_tokens), unpacked(header.states),
                  unpacked(header.pages)};
  constexpr size_t kChunk = 4096;
  for (bool more = true; more;) {
    const size_t before = log.records.size();
    log.records.resize(before + kChunk);
    in.read(reinterpret_cast<char*>(log.records.data() + before), kChunk * sizeof(MoveRecord));
    const auto bytes = static_cast<size_t>(in.gcount());
    log.records.resize(before + bytes / sizeof(MoveRecord));  // one that was cut off is left out
    more = bytes == kChunk * sizeof(MoveRecord);
  }
  return log;
}

}  // namespace memory
