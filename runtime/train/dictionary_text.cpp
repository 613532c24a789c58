#include "runtime/train/dictionary_text.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>

namespace runtime {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& problem) {
  throw std::runtime_error(path + ": " + problem);
}

struct CloseGzip {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

std::string read_gzip(const std::string& path) {
  const std::unique_ptr<gzFile_s, CloseGzip> file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) fail(path, "cannot be read");
  std::string text;
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    const int count = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    if (count < 0) fail(path, "is not a gzip file, or is damaged");
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(count));
  }
}

// dictd writes numbers in base 64, the most significant digit first.
size_t parse_number(std::string_view digits, const std::string& path) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t value = 0;
  for (const char digit : digits) {
    const size_t found = kDigits.find(digit);
    if (found == kDigits.npos || value > (size_t{1} << 40)) fail(path, "holds a bad number");
    value = value * 64 + found;
  }
  return value;
}

}  // namespace

std::vector<DictionaryEntry> read_dictionary(const std::string& stem) {
  const std::string text = read_gzip(stem + ".dict.dz"), index = stem + ".index";
  std::ifstream in(index);
  if (!in) fail(index, "cannot be read");
  std::map<size_t, DictionaryEntry> entries;  // by where they begin; a text may have two headwords
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    if (first == line.npos || second == line.npos)
      fail(index, "a line does not hold a headword, an offset and a length");
    const size_t begin = parse_number(line.substr(first + 1, second - first - 1), index);
    const size_t size = parse_number(line.substr(second + 1), index);
    if (begin > text.size() || size > text.size() - begin)
      fail(index, "\"" + line.substr(0, first) + "\" lies past the end of the dictionary");
    if (line.starts_with("00-database")) continue;
    entries.try_emplace(begin, DictionaryEntry{line.substr(0, first), text.substr(begin, size)});
  }
  std::vector<DictionaryEntry> out;
  for (auto& [begin, entry] : entries) out.push_back(std::move(entry));
  return out;
}

}  // namespace runtime
