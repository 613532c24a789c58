// The passes of an optimizer step over arrays of parameters. Each reads and writes memory once;
// sums run in one fixed order whatever the threads (callers cut arrays the same way every time).
#pragma once

#include <cstddef>
#include <span>

namespace kernels {

// shards[0] becomes the sum of the shards, in their order; the others become zero. Returns the sum
// of the squares of the result, in blocks of 4096 numbers that are added in double.
double sum_shards(std::span<float* const> shards, size_t count);

// One step of AdamW (Loshchilov and Hutter 2019).
struct AdamW {
  float rate = 0;   // learning rate of this step
  float decay = 0;  // weight decay, times the rate
  float beta1 = 0.9f, beta2 = 0.95f, epsilon = 1e-8f;
  float correction1 = 1;  // 1 - beta1^step
  float correction2 = 1;  // 1 - beta2^step
  float grad_scale = 1;   // clipping, and 1 / what the loss was summed over
};

// Arrays of `count` numbers. grad becomes zero, ready for the next step; value is what the forward
// sees: the master, rounded to bf16 where `half`; it may be the master itself.
struct AdamWArrays {
  float* master = nullptr;
  float* first = nullptr;  // moments
  float* second = nullptr;
  float* grad = nullptr;
  float* value = nullptr;
  size_t count = 0;
  bool half = false;
};
void adamw_step(const AdamW& step, const AdamWArrays& arrays);

// value = master, rounded to bf16 (nearest, ties to even) where `half`.
void round_parameters(const float* master, float* value, size_t count, bool half);

}  // namespace kernels
