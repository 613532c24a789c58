#include "runtime/tokenizer.hpp"

#include <filesystem>
#include <map>
#include <unordered_map>

#include "runtime/bpe.hpp"
#include "runtime/pretokenizer.hpp"
#include "runtime/utf8.hpp"
#include "runtime/vocabulary_files.hpp"

namespace runtime {

constexpr size_t kPiecesPerQuestion = 1024;  // about a millisecond of words

struct Tokenizer::Impl {
  Impl(std::vector<std::string> tokens, std::map<TokenId, std::string> names)
      : base(std::move(tokens)), special_names(std::move(names)) {
    for (const auto& [id, name] : special_names) special_ids.emplace(name, id);
  }

  // `text` is valid UTF-8.
  void encode_valid(std::string_view text, std::vector<TokenId>& out,
                    const KeepGoing& keep_going) const {
    std::vector<std::string_view> pieces;
    pretokenizer.split(text, pieces);
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (i % kPiecesPerQuestion == 0 && keep_going && !keep_going()) return;
      base.encode(pieces[i], out);
    }
  }

  BytePairEncoder base;
  Pretokenizer pretokenizer;
  std::map<TokenId, std::string> special_names;
  std::unordered_map<std::string_view, TokenId> special_ids;  // keys point into special_names
};

Tokenizer::Tokenizer() = default;
Tokenizer::~Tokenizer() = default;

std::shared_ptr<const Tokenizer> Tokenizer::load(const std::string& directory) {
  const std::string model = directory + "/tiktoken.model";
  if (!std::filesystem::exists(model)) return nullptr;
  std::vector<std::string> tokens = read_tiktoken_model(model);
  auto names = read_special_tokens(directory + "/tokenizer_config.json",
                                   static_cast<TokenId>(tokens.size()));
  std::shared_ptr<Tokenizer> tokenizer(new Tokenizer);
  tokenizer->impl_ = std::make_unique<Impl>(std::move(tokens), std::move(names));
  return tokenizer;
}

void Tokenizer::encode_text(std::string_view text, std::vector<TokenId>& out,
                            const KeepGoing& keep_going) const {
  size_t valid_begin = 0;  // start of the current stretch of valid UTF-8
  size_t i = 0;
  while (i < text.size()) {
    const Utf8Unit unit = next_utf8_unit(text.substr(i));
    if (unit.kind != Utf8Unit::Kind::kValid) {
      impl_->encode_valid(text.substr(valid_begin, i - valid_begin), out, keep_going);
      for (size_t k = 0; k < unit.bytes; ++k) impl_->base.encode(text.substr(i + k, 1), out);
      valid_begin = i + unit.bytes;
    }
    i += unit.bytes;
  }
  impl_->encode_valid(text.substr(valid_begin), out, keep_going);
}

size_t Tokenizer::longest_token_bytes() const { return impl_->base.longest_bytes(); }

std::optional<TokenId> Tokenizer::special(std::string_view name) const {
  const auto found = impl_->special_ids.find(name);
  if (found == impl_->special_ids.end()) return std::nullopt;
  return found->second;
}

bool Tokenizer::is_special(TokenId id) const { return impl_->special_names.contains(id); }

std::string_view Tokenizer::bytes(TokenId id) const {
  const auto found = impl_->special_names.find(id);
  return found == impl_->special_names.end() ? impl_->base.bytes(id)
                                             : std::string_view(found->second);
}

uint32_t Tokenizer::size() const {
  if (impl_->special_names.empty()) return impl_->base.size();
  return static_cast<uint32_t>(impl_->special_names.rbegin()->first) + 1;
}

}  // namespace runtime
