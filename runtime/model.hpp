// The model as the engine sees it: a batch of token rows in, then the logits of the wanted rows, as
// many at a time as the caller has room for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/ops.hpp"
#include "runtime/request.hpp"

namespace runtime {

// Bytes a sequence needs on the device, and where the arena keeps them.
struct CacheGeometry {
  uint64_t state_bytes = 0;  // one slot: recurrent states and conv windows of all KDA layers, fp32
  uint64_t page_bytes = 0;   // one page: page_tokens rows of every MLA layer
  uint32_t page_tokens = 64;
};

struct CacheMemory {
  std::byte* state_base = nullptr;  // slot s at state_base + s * state_stride
  size_t state_stride = 0;
  std::byte* page_base = nullptr;  // page p at page_base + p * page_stride
  size_t page_stride = 0;
};

struct ForwardBatch {
  std::span<const TokenId> tokens;  // [rows]
  kernels::BatchView view;
  std::span<const uint32_t> logit_rows;  // batch rows whose logits are wanted, ascending
  // The state as it is after `row` is written to `slot` too; no such slot is a segment's.
  std::span<const kernels::KdaArgs::Capture> captures = {};
};

class Model {
 public:
  virtual ~Model() = default;
  virtual uint32_t vocab_size() const = 0;
  virtual CacheGeometry geometry() const = 0;
  virtual uint64_t weight_bytes() const = 0;
  // Updates states and pages in place, and keeps what the logits of batch.logit_rows are made of
  // until the next forward. Rows <= max_rows given at construction.
  virtual void forward(const ForwardBatch& batch, const CacheMemory& memory) = 0;
  // out: [count, vocab_size], of the last forward's logit_rows [first, first + count). The values
  // of a row do not depend on the others asked for with it.
  virtual void logits(size_t first, size_t count, float* out) = 0;
};

struct ModelOptions {
  uint32_t page_tokens = 64;
  kernels::DType kv_dtype = kernels::DType::kF32;
  uint32_t max_rows = 1024;  // largest batch of token rows in one forward
};

class ModelConfig;
class WeightSource;

// The K3 / Kimi-Linear family. Throws std::runtime_error naming the tensor or config key that is
// wrong.
std::unique_ptr<Model> load_hybrid_model(const ModelConfig& config, const WeightSource& weights,
                                         kernels::Ops& ops, const ModelOptions& options);

// A model without arithmetic: logits of a row depend only on its token and vocabulary. Measures
// everything around the forward.
std::unique_ptr<Model> make_null_model(uint32_t vocab_size, const ModelOptions& options);

}  // namespace runtime
