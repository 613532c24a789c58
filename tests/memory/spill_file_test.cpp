// A file of copies is whole or of no use at all.
#include "memory/spill_file.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "memory/checksum.hpp"
#include "tests/support/temporary_directory.hpp"

using memory::BlockKind;
using memory::SpillHeader;
using memory::SpillReader;
using memory::SpillRecord;
using memory::SpillWriter;

namespace {

namespace fs = std::filesystem;

const SpillHeader kHeader{77, 48, 16, 64, 64};

std::string file_in(const support::TemporaryDirectory& folder) {
  return memory::spill_path(folder.path());
}

std::vector<std::byte> bytes_of(std::mt19937& rng, size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng());
  return bytes;
}

struct Copy {
  SpillRecord record;
  std::vector<std::byte> bytes;
};

std::vector<Copy> copies(uint32_t count) {
  std::mt19937 rng(count);
  std::vector<Copy> all;
  for (uint32_t i = 0; i < count; ++i) {
    Copy copy;
    copy.record.kind = rng() % 3 == 0 ? BlockKind::kState : BlockKind::kPage;
    copy.record.at = {{rng(), rng()}, {rng(), rng()}, rng(), i * 64};
    copy.bytes = bytes_of(rng, copy.record.kind == BlockKind::kState ? 48 : 16);
    copy.record.checksum = memory::checksum(copy.bytes);
    all.push_back(std::move(copy));
  }
  return all;
}

void write(const std::string& path, const std::vector<Copy>& all) {
  SpillWriter writer(path, kHeader);
  for (const Copy& copy : all) REQUIRE(writer.add(copy.record, copy.bytes));
  const auto size = writer.finish();
  REQUIRE(size.has_value());
  CHECK(*size == fs::file_size(path));
}

std::string trouble(const std::string& path, const SpillHeader& header = kHeader) {
  const auto reader = SpillReader::open(path, header);
  return reader ? "" : reader.error().message;
}

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void replace(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

}  // namespace

TEST_CASE("What is spilled reads back, in order", "[memory]") {
  const support::TemporaryDirectory folder;
  const std::string file = file_in(folder);
  for (const uint32_t count : {0u, 1u, 40u}) {
    const auto all = copies(count);
    write(file, all);
    auto reader = SpillReader::open(file, kHeader);
    REQUIRE(reader.has_value());
    REQUIRE(reader->records().size() == count);
    for (uint32_t i = count; i-- > 0;) {  // in any order
      const SpillRecord& record = reader->records()[i];
      CHECK(record.kind == all[i].record.kind);
      CHECK(record.at == all[i].record.at);
      std::vector<std::byte> bytes(reader->bytes_of(record));
      REQUIRE(reader->read(i, bytes.data()));
      CHECK(bytes == all[i].bytes);
    }
  }
}

TEST_CASE("A file that was written under other circumstances is refused, with the reason",
          "[memory]") {
  const support::TemporaryDirectory folder;
  const std::string file = file_in(folder);
  CHECK(SpillReader::open(file, kHeader).error().code == kernels::ErrorCode::kNotFound);
  write(file, copies(5));
  SpillHeader other = kHeader;
  other.arithmetic_id = 78;
  CHECK(trouble(file, other).find("other weights") != std::string::npos);
  for (uint64_t SpillHeader::*part : {&SpillHeader::state_bytes, &SpillHeader::page_bytes}) {
    other = kHeader;
    other.*part += 1;
    CHECK(trouble(file, other).find("geometry") != std::string::npos);
  }
  for (uint32_t SpillHeader::*part : {&SpillHeader::page_tokens, &SpillHeader::grid}) {
    other = kHeader;
    other.*part *= 2;
    CHECK(trouble(file, other).find("page size") != std::string::npos);
  }
  replace(file, "something else altogether, and long enough to hold a header of a file");
  CHECK(trouble(file).find("no file of cached states") != std::string::npos);
}

TEST_CASE("A file that changed anywhere, or was cut anywhere, is refused", "[memory][property]") {
  const support::TemporaryDirectory folder;
  const std::string file = file_in(folder);
  write(file, copies(6));
  const std::string whole = contents(file);
  CHECK(trouble(file) == "");
  for (size_t at = 0; at < whole.size(); ++at) {
    CAPTURE(at);
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    replace(file, changed);
    REQUIRE(trouble(file) != "");
    replace(file, whole.substr(0, at));
    REQUIRE(trouble(file) != "");
  }
  replace(file, whole + "x");
  CHECK(trouble(file).find("behind its end") != std::string::npos);
}

TEST_CASE("A file is replaced only by a whole one", "[memory]") {
  const support::TemporaryDirectory folder;
  const std::string file = file_in(folder);
  write(file, copies(3));
  const std::string before = contents(file);
  {
    SpillWriter writer(file, kHeader);
    REQUIRE(writer.add(copies(1)[0].record, copies(1)[0].bytes));
  }
  CHECK(contents(file) == before);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
  SpillWriter nowhere(folder.file("missing/file"), kHeader);
  CHECK_FALSE(nowhere.add(copies(1)[0].record, copies(1)[0].bytes));
  CHECK_FALSE(nowhere.finish().has_value());
}

TEST_CASE("A checksum sees any change of a bit, and every length", "[memory]") {
  std::mt19937 rng(1);
  for (size_t size = 0; size < 70; ++size) {
    auto bytes = bytes_of(rng, size);
    const uint64_t sum = memory::checksum(bytes);
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      REQUIRE(memory::checksum(bytes) != sum);
      bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
    bytes.push_back(std::byte{0});
    CHECK(memory::checksum(bytes) != sum);
    CHECK(memory::checksum(bytes, 1) != memory::checksum(bytes, 2));
  }
}
