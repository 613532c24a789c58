// Every operation a model may call, as one interface that a backend fills in (cpu now, cuda beside
// it).
//
// Canonical arithmetic: the value of an output row depends only on that row's inputs, never on the
// other rows of the batch, the number of rows, how rows are cut into calls, the thread count or the
// page size. So every sum has one fixed order, stated at its function. Activations are fp32,
// row-major, `ld` = floats from one row to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/base/dtype.hpp"

namespace kernels {

// A matrix as a weights file stores it: W[n outputs, k inputs], element (i, j) at data[i * stride_n
// + j * stride_k]. MXFP4: data is [n, k/2] nibble pairs (low nibble = even column), scale is [n,
// k/32] E8M0 bytes, strides are ignored.
struct MatrixView {
  DType dtype = DType::kF32;
  const void* data = nullptr;
  const uint8_t* scale = nullptr;  // MXFP4 only
  size_t n = 0, k = 0;
  size_t stride_n = 0, stride_k = 1;  // in elements; a transposed view swaps them
};

// A weight matrix in the layout its backend streams (panels of 16 outputs). Made by Ops::pack, owns
// its bytes.
class Matrix {
 public:
  virtual ~Matrix() = default;
  size_t n() const { return n_; }
  size_t k() const { return k_; }
  DType dtype() const { return dtype_; }
  virtual size_t bytes() const = 0;

 protected:
  Matrix(DType dtype, size_t n, size_t k) : dtype_(dtype), n_(n), k_(k) {}

 private:
  DType dtype_;
  size_t n_, k_;
};
using MatrixPtr = std::unique_ptr<const Matrix>;

struct Rows {  // read-only activations [count, width]
  const float* data = nullptr;
  size_t ld = 0;
};
struct MutableRows {
  float* data = nullptr;
  size_t ld = 0;
  operator Rows() const { return {data, ld}; }
};

// The consecutive rows of one sequence in a batch, in token order.
struct Segment {
  uint32_t row_begin = 0;
  uint32_t row_count = 0;
  uint32_t position = 0;    // absolute position of the first row
  uint32_t slot = 0;        // physical state slot
  uint32_t page_begin = 0;  // this sequence's pages are BatchView::pages[page_begin ...], page i
                            // holding positions [i * page_tokens, (i + 1) * page_tokens)
  uint32_t write_from = 0;  // rows at positions below it are in the pages already, which other
                            // sequences read: attention reads them, and nothing writes them
};

struct BatchView {
  std::span<const Segment> segments;
  std::span<const uint32_t> pages;  // physical page numbers
  uint32_t row_count = 0;
};

enum class Activation : uint8_t { kSwiGLU, kSiTU };

struct ActivationSpec {
  Activation kind = Activation::kSwiGLU;
  float beta = 4.0f;          // SiTU: beta * tanh(g / beta) * sigmoid(g)
  float linear_beta = 25.0f;  // SiTU: * linear_beta * tanh(u / linear_beta); <= 0 leaves u as it is
};

// The longest short convolution that every backend computes (K3's has 4 taps).
inline constexpr size_t kKdaMaxTaps = 16;

// One KDA layer between its projections: short convolution + SiLU, L2 norm, decay gate, recurrence,
// gated RMSNorm (the KDA layer of the Kimi Linear report). All pointers fp32.
struct KdaArgs {
  size_t
      heads = 0,
      d = 0;  // d = d_k = d_v of one head; width D = heads * d; d is a multiple of 32 (else of 16)
  size_t conv_width = 4;           // taps, at most kKdaMaxTaps
  Rows qkv;                        // [rows, 3 D] raw projections q | k | v
  Rows decay;                      // [rows, D] f = W_fb W_fa x
  Rows beta;                       // [rows, heads] before the sigmoid
  Rows gate;                       // [rows, D] output gate gamma before the sigmoid
  const float* conv = nullptr;     // [3 D, conv_width], last tap = current token
  const float* a_log = nullptr;    // [heads]
  const float* dt_bias = nullptr;  // [D]
  bool has_lower_bound = false;    // K3: g = lower_bound * sigmoid(exp(a_log) (f + dt)); else
                                   // -exp(a_log) softplus(f + dt)
  float lower_bound = 0;
  const float* norm = nullptr;  // [d] o_norm weight
  float norm_eps = 1e-5f;
  // State of segment s starts at state_base + s.slot * slot_stride bytes. Layout: see
  // KdaStateLayout.
  std::byte* state_base = nullptr;
  size_t slot_stride = 0;       // bytes
  size_t recurrent_offset = 0;  // bytes inside the slot: float[heads, d/32, d, 32]: value tiles of
                                // 32, row after row of keys
  size_t conv_offset = 0;       // bytes inside the slot: float[conv_width - 1, 3 D], oldest first
  // Optional: also write the state as it is after `row` (a batch row) to the slot `slot` (a
  // snapshot inside the forward).
  struct Capture {
    uint32_t row = 0;
    uint32_t slot = 0;
  };
  std::span<const Capture> captures;
  MutableRows out;  // [rows, D]
};

// NoPE MLA in the absorbed form over paged rows [latent | k_r]; the rows of this batch are appended
// first. Scores and softmax by blocks of 64 absolute positions, merged in ascending order with an
// online softmax.
struct MlaArgs {
  size_t heads = 0, d_nope = 0, d_rope = 0, d_v = 0, kv_lora = 0;
  Rows q;    // [rows, heads * (d_nope + d_rope)]
  Rows ckv;  // [rows, kv_lora + d_rope] raw kv_a projection; normalised here before it is stored
  const float* kv_norm = nullptr;  // [kv_lora]
  float kv_norm_eps = 1e-6f;
  std::span<const MatrixPtr>
      absorb_k;  // per head: [kv_lora outputs, d_nope inputs]  (W_kc transposed)
  std::span<const MatrixPtr> absorb_v;  // per head: [d_v outputs, kv_lora inputs]
  const Rows* gate = nullptr;           // [rows, heads * d_v] before the sigmoid, or none
  std::byte* page_base =
      nullptr;  // page p of this layer: page_base + p * page_stride + layer_offset
  size_t page_stride = 0, layer_offset = 0;  // bytes
  size_t page_tokens = 64;
  DType kv_dtype = DType::kF32;  // kF32, or kBF16 (a named lossy mode)
  MutableRows out;               // [rows, heads * d_v]
};

// The residual stream between two sublayers: prefix += sublayer, then out = RMSNorm of the mix. The
// mix is the prefix alone where the bank is empty; else the sum of bank rows and prefix, weighted
// by the softmax of their scores (attention residuals). out must not alias a source.
struct ResidualArgs {
  size_t width = 0;
  MutableRows prefix;          // [rows, width] raw sum
  Rows sublayer;               // [rows, width] is added to the prefix first; data null: nothing is
  bool restart = false;        // the prefix is empty: it becomes the sublayer
  std::span<const Rows> bank;  // raw sums [rows, width] in push order
  std::span<const Rows> bank_scores;  // of each bank row: [rows, 1], see residual_scores
  const float* gain = nullptr;        // [width] w_norm * w_proj, for the prefix's score
  const float* norm = nullptr;        // [width] weight of the RMSNorm
  float eps = 1e-5f;
  MutableRows out;  // [rows, width]
};

struct ExpertWeights {  // one expert: y = w2 * act(w1 z, w3 z)
  MatrixPtr w1, w3, w2;
};

// Routing result, experts of a row in ascending expert id.
struct Routing {
  size_t top_k = 0;
  std::vector<uint32_t> expert;  // [rows, top_k]
  std::vector<float> weight;     // [rows, top_k]
};

struct RouteArgs {
  Rows logits;                  // [rows, experts]
  const float* bias = nullptr;  // [experts], used for selection only
  size_t experts = 0, top_k = 0;
  bool renormalise = true;
  float scale = 1.0f;
};

class Ops {
 public:
  virtual ~Ops() = default;

  // Copies a matrix into this backend's layout. MXFP4 stays packed.
  virtual MatrixPtr pack(const MatrixView& view) = 0;

  // y[r] = W x[r]. Order per output: fp32/bf16/f16 in blocks of 256 inputs, each one FMA chain from
  // +0 in ascending k, block sums added in order; MXFP4 in blocks of 32, y = fma(2^e, chain, y).
  virtual void matmul(Rows x, const Matrix& w, MutableRows y, size_t rows) = 0;

  // out[r] = table[ids[r]]; the table stays in its file's dtype, row-major [vocab, width].
  virtual void embed(const MatrixView& table, std::span<const int32_t> ids, MutableRows out) = 0;

  // y = x * (mean(x^2) + eps)^-1/2 * w; sum over 16 interleaved lanes, then a fixed tree. y may
  // alias x.
  virtual void rms_norm(Rows x, const float* weight, float eps, MutableRows y, size_t rows,
                        size_t width) = 0;

  virtual void add(Rows x, MutableRows y, size_t rows, size_t width) = 0;  // y += x
  virtual void glu(const ActivationSpec& act, Rows gate, Rows up, MutableRows out, size_t rows,
                   size_t width) = 0;

  // scores[r][g] = (x[r] . gains[g]) / rms(x[r]), sums in the 16 lanes of rms_norm: what a row of
  // the attention-residual bank scores in each of the mixes to come.
  virtual void residual_scores(Rows x, std::span<const float* const> gains, float eps,
                               MutableRows scores, size_t rows, size_t width) = 0;

  // Adds a sublayer's output to the residual stream and prepares the next sublayer's input.
  virtual void residual_mix(const ResidualArgs& args, size_t rows) = 0;

  virtual void kda(const KdaArgs& args, const BatchView& batch) = 0;
  virtual void mla(const MlaArgs& args, const BatchView& batch) = 0;

  // sigmoid, top-k of (score + bias) with ties to the lower id, weights from the unbiased scores.
  virtual void route(const RouteArgs& args, size_t rows, Routing& out) = 0;

  // out[r] = sum over the row's experts, ascending id, acc = fma(weight, y, acc) from +0. out is
  // overwritten.
  virtual void experts(Rows z, std::span<const ExpertWeights> weights, const Routing& routing,
                       const ActivationSpec& act, MutableRows out, size_t rows) = 0;
};

// CPU backend on a pool of `threads` threads (the caller's thread is one of them). Kernels are
// Highway, dispatched at run time.
std::unique_ptr<Ops> make_cpu_ops(unsigned threads);

// Name of the SIMD target in use ("AVX2", "SSE4", ...): part of the arithmetic id.
const char* cpu_target_name();

}  // namespace kernels
