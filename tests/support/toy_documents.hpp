// Documents whose next token can be learned: counting upwards in steps that the first tokens set.
#pragma once

#include <random>
#include <vector>

#include "runtime/train/documents.hpp"

namespace support {

class ToyDocuments final : public runtime::Documents {
 public:
  // `count` documents over `vocab` ids; every third one is an example whose first half is given.
  ToyDocuments(size_t count, uint32_t vocab, uint32_t seed) {
    std::mt19937 random(seed);
    for (size_t i = 0; i < count; ++i) {
      const bool example = i % 3 == 0;
      const size_t length = example ? 6 + random() % 20 : 4 + random() % 90;
      const auto step = static_cast<uint32_t>(1 + random() % 3);
      auto token = static_cast<uint32_t>(random() % vocab);
      Kept kept;
      kept.example = example;
      for (size_t t = 0; t < length; ++t) {
        kept.tokens.push_back(static_cast<uint16_t>(token));
        kept.mask.push_back(!example || t >= length / 2);
        token = (token + step) % vocab;
      }
      all_.push_back(std::move(kept));
    }
  }

  size_t count() const override { return all_.size(); }
  runtime::Document document(size_t index) const override {
    const auto& kept = all_[index];
    return {kept.tokens, kept.mask,
            kept.example ? runtime::TextSource::kTools : runtime::TextSource::kPython};
  }

 private:
  struct Kept {
    std::vector<uint16_t> tokens;
    std::vector<uint8_t> mask;
    bool example = false;
  };
  std::vector<Kept> all_;
};

}  // namespace support
