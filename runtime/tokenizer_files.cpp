#include "runtime/tokenizer_files.hpp"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <map>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "runtime/output_files.hpp"

namespace runtime {

namespace {

constexpr uint32_t kSpecials = 256;

// Offsets from the first special id. Ids without a name of their own are reserved.
const std::map<uint32_t, std::string_view>& special_names() {
  static const std::map<uint32_t, std::string_view> names = {{0, "[BOS]"},
                                                             {1, "[EOS]"},
                                                             {2, "<|end_of_msg|>"},
                                                             {3, "<|open|>"},
                                                             {4, "<|close|>"},
                                                             {5, "<|sep|>"},
                                                             {6, "[start_header_id]"},
                                                             {7, "[end_header_id]"},
                                                             {9, "[EOT]"},
                                                             {18, "<|media_begin|>"},
                                                             {19, "<|media_content|>"},
                                                             {20, "<|media_end|>"},
                                                             {21, "<|media_pad|>"},
                                                             {65, "<osagent_mode>"},
                                                             {254, "[UNK]"},
                                                             {255, "[PAD]"}};
  return names;
}

std::string base64(std::string_view bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t have = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j)
      group = (group << 8) | (j < have ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) out += j <= have ? kDigits[(group >> (18 - 6 * j)) & 63] : '=';
  }
  return out;
}

// The byte sequences of ranks 0 .. count - 1: all bytes, then pairs of printable ASCII, then the
// other pairs, then triples.
std::vector<std::string> byte_sequences(uint32_t count) {
  std::vector<std::string> out;
  const auto full = [&] { return out.size() == count; };
  const auto printable = [](int byte) { return byte >= 0x20 && byte < 0x7f; };
  for (int a = 0; a < 256 && !full(); ++a) out.push_back({static_cast<char>(a)});
  for (const bool both_printable : {true, false}) {
    for (int a = 0; a < 256; ++a) {
      for (int b = 0; b < 256 && !full(); ++b) {
        if ((printable(a) && printable(b)) == both_printable)
          out.push_back({static_cast<char>(a), static_cast<char>(b)});
      }
    }
  }
  for (uint32_t abc = 0; abc < (1u << 24) && !full(); ++abc) {
    out.push_back(
        {static_cast<char>(abc >> 16), static_cast<char>(abc >> 8), static_cast<char>(abc)});
  }
  return out;
}

}  // namespace

void write_tokenizer_files(const std::string& directory, uint32_t vocab) {
  if (vocab < 256 + kSpecials) {
    throw std::runtime_error("vocab_size is " + std::to_string(vocab) +
                             "; a tokenizer needs 512 or more: 256 bytes and 256 special tokens");
  }
  write_tokenizer_files(directory, byte_sequences(vocab - kSpecials));
}

void write_tokenizer_files(const std::string& directory, const std::vector<std::string>& ranks) {
  std::string model;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    model += base64(ranks[rank]) + " " + std::to_string(rank) + "\n";
  write_file(directory + "/tiktoken.model", model);

  boost::json::object added;
  for (uint32_t offset = 0; offset < kSpecials; ++offset) {
    const size_t id = ranks.size() + offset;
    const auto named = special_names().find(offset);
    const std::string name = named != special_names().end()
                                 ? std::string(named->second)
                                 : "<|reserved_token_" + std::to_string(id) + "|>";
    added[std::to_string(id)] = boost::json::object{{"content", name}, {"special", true}};
  }
  const boost::json::object config = {{"tokenizer_class", "TikTokenTokenizer"},
                                      {"bos_token", "[BOS]"},
                                      {"eos_token", "<|end_of_msg|>"},
                                      {"pad_token", "[PAD]"},
                                      {"unk_token", "[UNK]"},
                                      {"added_tokens_decoder", added}};
  write_file(directory + "/tokenizer_config.json", boost::json::serialize(config) + "\n");
}

}  // namespace runtime
