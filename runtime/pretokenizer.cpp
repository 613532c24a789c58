#include "runtime/pretokenizer.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>
#include <stdexcept>
#include <string>

#include "runtime/utf8.hpp"

namespace runtime {

namespace {

// The pattern's classes. PCRE2 has no class intersection, but the general categories partition the
// characters: "these categories, without Han" is the negation of all the other categories and Han.
// `sc:` asks for the Script property; a bare \p{Han} would mean Script_Extensions and take in
// shared CJK punctuation.
const std::string kHan = R"(\p{sc:Han})";
const std::string kUpper =
    R"([^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}])";  // Lu Lt Lm Lo M, not Han
const std::string kLower =
    R"([^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}])";  // Ll Lm Lo M, not Han
// White_Space, spelled out: PCRE2's own \s differs (ASCII only, or with U+180E).
const std::string kSpaces =
    R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
const std::string kSpace = "[" + kSpaces + "]";
const std::string kPrefix = R"([^\r\n\p{L}\p{N}]?)";
const std::string kSuffix = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";

std::string pattern_text() {
  return "[" + kHan + "]+" +                                      //
         "|" + kPrefix + kUpper + "*" + kLower + "+" + kSuffix +  // "Hello", " world's"
         "|" + kPrefix + kUpper + "+" + kLower + "*" + kSuffix +  // "HELLO"
         R"(|\p{N}{1,3})" +                                       //
         "| ?[^" + kSpaces + R"(\p{L}\p{N}]+[\r\n]*)" +           // punctuation
         "|" + kSpace + R"(*[\r\n]+)" +                           // up to the end of a line
         "|" + kSpace + "+(?![^" + kSpaces + "])" +  // all but the blank that leads the next word
         "|" + kSpace + "+";
}

// What cuts runs: White_Space and the four ASCII separators, which the model's own tokenizer counts
// as space here.
bool is_run_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

struct MatchDataDeleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
using MatchData = std::unique_ptr<pcre2_match_data, MatchDataDeleter>;

// Calls `slice(begin, end)` for stretches of at most slice_characters in which no run is longer
// than run_characters.
template <class Slice>
void for_each_slice(std::string_view text, const Pretokenizer::Limits& limits, Slice slice) {
  size_t begin = 0, slice_length = 0, run_length = 0;
  bool run_is_space = false;
  for (size_t i = 0; i < text.size();) {
    const Utf8Unit unit = next_utf8_unit(text.substr(i));
    const bool is_space = is_run_space(unit.code_point);
    if (slice_length == limits.slice_characters) {  // runs are counted afresh in each
      slice(begin, i);
      begin = i;
      slice_length = run_length = 0;
    }
    if (run_length == 0 || is_space != run_is_space) {
      run_length = 0;
      run_is_space = is_space;
    } else if (run_length == limits.run_characters) {
      slice(begin, i);
      begin = i;
      run_length = 0;
    }
    ++run_length;
    ++slice_length;
    i += unit.bytes;
  }
  if (begin < text.size()) slice(begin, text.size());
}

}  // namespace

struct Pretokenizer::Pattern {
  pcre2_code* code = nullptr;
  ~Pattern() { pcre2_code_free(code); }
};

Pretokenizer::Pretokenizer() : Pretokenizer(Limits{}) {}

Pretokenizer::Pretokenizer(Limits limits) : limits_(limits) {
  const std::string text = pattern_text();
  int error = 0;
  PCRE2_SIZE error_offset = 0;
  // Anchored: every character starts some alternative, so matches follow each other without a gap.
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                   PCRE2_UTF | PCRE2_ANCHORED, &error, &error_offset, nullptr);
  if (code == nullptr) {
    throw std::runtime_error("pre-tokenizer: PCRE2 " + std::to_string(PCRE2_MAJOR) + "." +
                             std::to_string(PCRE2_MINOR) + " refuses the pattern at offset " +
                             std::to_string(error_offset) + " (error " + std::to_string(error) +
                             "); 10.40 or newer is needed");
  }
  auto pattern = std::make_unique<Pattern>();
  pattern->code = code;
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without a JIT, pcre2_match interprets
  pattern_ = std::move(pattern);
}

Pretokenizer::~Pretokenizer() = default;

void Pretokenizer::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  for_each_slice(text, limits_, [&](size_t begin, size_t end) {
    match_slice(text.substr(begin, end - begin), pieces);
  });
}

void Pretokenizer::match_slice(std::string_view slice,
                               std::vector<std::string_view>& pieces) const {
  const MatchData data(pcre2_match_data_create(1, nullptr));
  if (data == nullptr) throw std::bad_alloc();
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(slice.data());
  for (size_t position = 0; position < slice.size();) {
    // A match may run out of its stack in compiled code and still succeed interpreted, whose limits
    // are counted on the heap.
    int rc = pcre2_match(pattern_->code, subject, slice.size(), position, PCRE2_NO_UTF_CHECK,
                         data.get(), nullptr);
    if (rc < 0) {
      rc = pcre2_match(pattern_->code, subject, slice.size(), position,
                       PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data.get(), nullptr);
    }
    // Beyond the interpreter's limits too: the rest stays one piece, which still encodes to the
    // same bytes.
    const size_t end = rc < 0 ? slice.size() : pcre2_get_ovector_pointer(data.get())[1];
    pieces.push_back(slice.substr(position, end - position));
    position = end;
  }
}

}  // namespace runtime
