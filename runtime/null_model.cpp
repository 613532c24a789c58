// A model without arithmetic: the token alone decides its logits, which favour one id by far. With
// it a run measures everything around the forward. It touches neither states nor pages, yet asks
// for some, so that pools and plans are real.
#include <algorithm>

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

  void forward(const ForwardBatch& batch, const CacheMemory&, float* logits) override {
    std::fill_n(logits, batch.logit_rows.size() * vocab_size_, 0.0f);
    for (const uint32_t row : batch.logit_rows) {
      const uint32_t favourite =
          static_cast<uint32_t>(batch.tokens[row]) * 2654435761u % vocab_size_;
      logits[favourite] = 30.0f;  // e^30 outweighs any vocabulary: sampling follows it too
      logits += vocab_size_;
    }
  }

 private:
  uint32_t vocab_size_, page_tokens_;
};

}  // namespace

std::unique_ptr<Model> make_null_model(uint32_t vocab_size, const ModelOptions& options) {
  return std::make_unique<NullModel>(vocab_size, options);
}

}  // namespace runtime
