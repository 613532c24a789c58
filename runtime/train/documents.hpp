// Token documents to learn from, whatever holds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/train/text_source.hpp"

namespace runtime {

struct Document {
  std::span<const uint16_t> tokens;
  std::span<const uint8_t> mask;  // of each token: 1 where it is to be learned
  TextSource source = TextSource::kPython;
};

class Documents {
 public:
  virtual ~Documents() = default;
  virtual size_t count() const = 0;
  virtual Document document(size_t index) const = 0;  // valid while the documents live
};

}  // namespace runtime
