// A tokenizer's two files in a directory of their own, removed at the end: as small or as broken as
// a test wants them.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer.hpp"

namespace support {

inline std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k)
      out += i + k <= bytes.size() ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

inline std::vector<std::string> single_bytes() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  return tokens;
}

class TokenizerDirectory {
 public:
  TokenizerDirectory() {
    static std::atomic<int> count = 0;
    path_ = std::filesystem::temp_directory_path() /
            (std::string("sluice-tokenizer-") + std::to_string(::getpid()) + "-" +
             std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~TokenizerDirectory() { std::filesystem::remove_all(path_); }
  TokenizerDirectory(const TokenizerDirectory&) = delete;
  TokenizerDirectory& operator=(const TokenizerDirectory&) = delete;

  std::string path() const { return path_.string(); }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(path_ / file, std::ios::binary) << text;
  }
  void write_model(const std::vector<std::string>& tokens) const {
    std::string text;
    for (size_t rank = 0; rank < tokens.size(); ++rank)
      text += base64(tokens[rank]) + " " + std::to_string(rank) + "\n";
    write("tiktoken.model", text);
  }
  void write_special(const std::map<int, std::string>& names) const {
    std::string text;
    for (const auto& [id, name] : names) {
      if (!text.empty()) text += ",\n";
      text.append("\"")
          .append(std::to_string(id))
          .append("\": {\"content\": \"")
          .append(name)
          .append("\"}");
    }
    write("tokenizer_config.json", "{\"added_tokens_decoder\": {\n" + text + "\n}}\n");
  }

 private:
  std::filesystem::path path_;
};

// One token per byte (id = byte), then the special tokens in the order of the real vocabulary: 512
// ids.
inline std::shared_ptr<const runtime::Tokenizer> byte_tokenizer() {
  static const auto tokenizer = [] {
    TokenizerDirectory directory;
    directory.write_model(single_bytes());
    directory.write_special({{256, "[BOS]"},
                             {257, "[EOS]"},
                             {258, "<|end_of_msg|>"},
                             {259, "<|open|>"},
                             {260, "<|close|>"},
                             {261, "<|sep|>"},
                             {511, "[PAD]"}});
    return runtime::Tokenizer::load(directory.path());
  }();
  return tokenizer;
}

}  // namespace support
