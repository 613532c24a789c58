#include "runtime/vocabulary_files.hpp"

#include <algorithm>
#include <boost/json/stream_parser.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

namespace runtime {

namespace json = boost::json;

namespace {

constexpr TokenId kIdMax =
    (1 << 24) - 1;  // 100 times the largest vocabularies: a wild id must not size an array

[[noreturn]] void fail(const std::string& place, const std::string& problem) {
  throw std::runtime_error(place + ": " + problem);
}

std::string id_range() { return "a whole number from 0 to " + std::to_string(kIdMax); }

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(path, "cannot be read");
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) fail(path, "cannot be read to its end");
  return text;
}

std::optional<uint32_t> base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<uint32_t>(c - 'A');
  if (c >= 'a' && c <= 'z') return static_cast<uint32_t>(c - 'a' + 26);
  if (c >= '0' && c <= '9') return static_cast<uint32_t>(c - '0' + 52);
  if (c == '+') return 62;
  if (c == '/') return 63;
  return std::nullopt;
}

// Empty unless `text` is padded base64 of one or more bytes.
std::string decode_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return {};
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string out;
  uint32_t bits = 0, bit_count = 0;
  for (const char c : text.substr(0, text.size() - padding)) {
    const auto digit = base64_digit(c);
    if (!digit) return {};
    bits = (bits << 6 | *digit) & 0xFFFF;
    bit_count += 6;
    if (bit_count < 8) continue;
    bit_count -= 8;
    out.push_back(static_cast<char>(bits >> bit_count & 0xFF));
  }
  return out;
}

std::optional<TokenId> parse_id(std::string_view text) {
  TokenId id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0 || id > kIdMax)
    return std::nullopt;
  return id;
}

struct ModelLine {
  std::string bytes;
  TokenId rank = 0;
};

ModelLine parse_line(std::string_view line, const std::string& place) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) fail(place, "expected a base64 token, one space and a rank");
  ModelLine parsed;
  parsed.bytes = decode_base64(line.substr(0, space));
  if (parsed.bytes.empty()) fail(place, "the token is not padded base64 of one or more bytes");
  const std::string_view rank = line.substr(space + 1);
  const auto id = parse_id(rank);
  if (!id) fail(place, "the rank \"" + std::string(rank.substr(0, 40)) + "\" is not " + id_range());
  parsed.rank = *id;
  return parsed;
}

void require_all_bytes(const std::unordered_map<std::string, size_t>& lines,
                       const std::string& path) {
  for (int byte = 0; byte < 256; ++byte) {
    if (lines.contains(std::string(1, static_cast<char>(byte)))) continue;
    fail(path, "holds no token for the single byte " + std::to_string(byte) +
                   "; all 256 are needed, so that any text can be encoded");
  }
}

json::value parse_json(const std::string& text, const std::string& path) {
  json::stream_parser parser;
  json::error_code error;
  size_t used = parser.write_some(text, error);
  if (!error && used < text.size()) error = json::error::extra_data;
  if (!error && !parser.done()) error = json::error::incomplete;
  if (error) {
    used = std::min(used, text.size());
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(used), '\n');
    fail(path + ":" + std::to_string(line), "is not JSON (" + error.message() + ")");
  }
  return parser.release();
}

}  // namespace

std::vector<std::string> read_tiktoken_model(const std::string& path) {
  const std::string text = read_file(path);
  std::vector<std::string> tokens;
  std::unordered_map<std::string, size_t> lines;  // token -> the line that holds it
  size_t line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    ++line_number;
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::string place = path + ":" + std::to_string(line_number);
    ModelLine parsed = parse_line(line, place);
    const auto [known, is_new] = lines.emplace(parsed.bytes, line_number);
    if (!is_new) fail(place, "the token already stands in line " + std::to_string(known->second));
    const auto rank = static_cast<size_t>(parsed.rank);
    if (rank >= tokens.size()) tokens.resize(rank + 1);
    if (!tokens[rank].empty()) {
      fail(place, "rank " + std::to_string(rank) + " already stands in line " +
                      std::to_string(lines[tokens[rank]]));
    }
    tokens[rank] = std::move(parsed.bytes);
  }
  require_all_bytes(lines, path);
  return tokens;
}

std::map<TokenId, std::string> read_special_tokens(const std::string& path, TokenId base_ids) {
  const json::value config = parse_json(read_file(path), path);
  if (!config.is_object()) fail(path, "is not a JSON object");
  const json::value* list = config.get_object().if_contains("added_tokens_decoder");
  if (list == nullptr || !list->is_object()) {
    fail(path,
         "added_tokens_decoder is missing; expected an object that maps an id to {\"content\": "
         "name}");
  }
  std::map<TokenId, std::string> special;
  std::set<std::string> names;
  for (const auto& [key, entry] : list->get_object()) {
    const std::string place = path + ": added_tokens_decoder." + std::string(key);
    const auto id = parse_id(key);
    if (!id) fail(place, "the id is not " + id_range());
    if (*id < base_ids) {
      fail(place,
           "the id belongs to tiktoken.model; special tokens start at " + std::to_string(base_ids));
    }
    const json::value* name =
        entry.is_object() ? entry.get_object().if_contains("content") : nullptr;
    if (name == nullptr || !name->is_string() || name->get_string().empty()) {
      fail(place, "has no \"content\"; expected {\"content\": the token's name}");
    }
    std::string content(name->get_string());
    if (!names.insert(content).second)
      fail(place, "the name \"" + content + "\" is given to two ids");
    if (!special.emplace(*id, std::move(content)).second) fail(place, "the id is given twice");
  }
  if (special.empty()) return special;
  for (TokenId id = base_ids; id < special.rbegin()->first; ++id) {
    if (!special.contains(id)) special.emplace(id, "<|reserved_token_" + std::to_string(id) + "|>");
  }
  return special;
}

}  // namespace runtime
