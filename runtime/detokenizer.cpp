#include "runtime/detokenizer.hpp"

#include "runtime/tokenizer.hpp"

namespace runtime {

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special)
    : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

std::string Detokenizer::push(TokenId id) {
  std::string out;
  if (!skip_special_ || !tokenizer_->is_special(id)) stream_.push(tokenizer_->bytes(id), out);
  return out;
}

std::string Detokenizer::finish() {
  std::string out;
  stream_.flush(out);
  return out;
}

}  // namespace runtime
