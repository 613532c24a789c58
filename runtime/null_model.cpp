// A model without arithmetic: the token alone decides its logits, which favour one id by far. With
// it a run measures everything around the forward. It touches neither states nor pages, yet asks
// for some, so that pools and plans are real.
#include <algorithm>
#include <vector>

#include "runtime/model.hpp"

namespace runtime {
namespace {

class NullModel final : public Model {
 public:
  NullModel(uint32_t vocab_size, const ModelOptions& options)
      : vocab_size_(vocab_size), page_tokens_(options.page_tokens) {}

  uint32_t vocab_size() const override { return vocab_size_; }
  CacheGeometry geometry() const override {
    return {.state_bytes = 4096,
            .page_bytes = uint64_t{64} * page_tokens_,
            .page_tokens = page_tokens_};
  }
  uint64_t weight_bytes() const override { return 0; }

  void forward(const ForwardBatch& batch, const CacheMemory&) override {
    favourites_.clear();
    for (const uint32_t row : batch.logit_rows) {
      favourites_.push_back(static_cast<uint32_t>(batch.tokens[row]) * 2654435761u % vocab_size_);
    }
  }

  void logits(size_t first, size_t count, float* out) override {
    std::fill_n(out, count * vocab_size_, 0.0f);
    // e^30 outweighs any vocabulary: sampling follows it too.
    for (size_t i = 0; i < count; ++i) out[i * vocab_size_ + favourites_.at(first + i)] = 30.0f;
  }

 private:
  uint32_t vocab_size_, page_tokens_;
  std::vector<uint32_t> favourites_;  // [logit rows] of the last forward
};

}  // namespace

std::unique_ptr<Model> make_null_model(uint32_t vocab_size, const ModelOptions& options) {
  return std::make_unique<NullModel>(vocab_size, options);
}

}  // namespace runtime
