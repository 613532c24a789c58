// Time of recurrent (KDA) and latent (MLA) attention on a modelled device, in microseconds, without
// the projections around it.
#pragma once

#include "kernels/sim/device_params.hpp"

namespace kernels {

// Of one rank and layer.
struct KdaWork {
  double heads = 0;
  double head_bytes = 0;  // of one head's state: 64 KiB at 128 x 128 in fp32
};

// Chunks in parallel over tokens and heads, but a sequence's chunks follow one another.
double kda_prefill_us(const DeviceParams& device, const KdaWork& work, double tokens,
                      double longest);
// Reads and writes every row's state; convolution, gates and output norm ride inside.
double kda_decode_us(const DeviceParams& device, const KdaWork& work, double rows);
// `width` tokens for each row on average; reads the state, keeps the inputs.
double kda_verify_us(const DeviceParams& device, const KdaWork& work, double rows, double width);

// Of one rank and layer.
struct MlaWork {
  double heads = 0;      // of queries on this rank
  double qk_dims = 0;    // of a head in the expanded form: 192
  double v_dims = 0;     // 128
  double row_dims = 0;   // of a cached row: 576
  double latent = 0;     // the part of it that is also the value: 512
  double row_bytes = 0;  // in the cache's number format
};

// `pairs` of tokens and positions, keys and values of every head expanded.
double mla_prefill_us(const DeviceParams& device, const MlaWork& work, double pairs);
// Absorbed: all heads of a rank read the same cached rows. `cached`: rows of all sequences; `width`
// tokens look at each.
double mla_decode_us(const DeviceParams& device, const MlaWork& work, double cached, double width);

}  // namespace kernels
