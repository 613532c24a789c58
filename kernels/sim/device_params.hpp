// A device as numbers: everything the cost formulas read. Times in microseconds, so a rate per
// second of 1e12 is one of 1e6 per microsecond. A value comes from a file in config/devices, which
// says where each was found; the formulas are in the other files of this folder.
#pragma once

#include <cstdint>
#include <string>

namespace kernels {

// What a step costs on a device whose kernels were not measured one by one (a CPU): the larger of
// its bytes and its operations over two rates, and something for every step, row and layer.
struct RooflineParams {
  double bytes_per_us = 0;  // memory, as a step streams it
  double flops_per_us = 0;  // products
  double step_us = 0;       // planning, sampling, messages
  double token_us = 0;      // of a token beside its products: norms, gates, sampling
  double launch_us = 0;     // of a layer
};

// A GPU whose kernels were measured one by one.
struct DeviceParams {
  std::string name;
  uint32_t version = 0;
  bool is_roofline = false;  // only memory_bytes, the links and `roofline` are meant
  RooflineParams roofline;

  uint64_t memory_bytes = 0;  // usable, of one device
  uint32_t multiprocessors = 0;

  // Dense products, bf16.
  double kernel_us = 0;            // shortest kernel: launch, first load, drain
  double weight_bytes_per_us = 0;  // streaming weights
  double gemm_flops_per_us = 0;    // sustained, large products

  // Routed experts, 4-bit weights, 8-bit activations.
  double moe_us = 0;     // routing, permutation and finalising of one layer
  double expert_us = 0;  // per distinct expert
  double expert_bytes_per_us = 0;
  double expert_flops_per_us = 0;
  double expert_row_us = 0;  // per (token, expert) row moved
  double expert_skew = 0;    // Zipf exponent of the experts' popularity

  // Recurrent attention (KDA), a head of 128 x 128 in fp32.
  double kda_token_head_us = 0;       // prefill: per token and head
  double kda_sequential_us = 0;       // prefill: per token of the longest sequence
  double kda_conv_token_head_us = 0;  // prefill: convolution and gates, per token and head
  double kda_decode_min_us = 0;
  double state_bytes_per_us = 0;  // decode: states read and written
  double kda_verify_us = 0;       // verify: floor, and its slope per position of the window
  double kda_verify_width_us = 0;
  double kda_verify_row_us = 0;  // verify: per sequence with 12 heads: floor and slope
  double kda_verify_row_width_us = 0;

  // Latent attention (MLA).
  double mla_flops_per_us = 0;         // prefill
  double mla_decode_us = 0;            // decode: split, merge
  double kv_bytes_per_us = 0;          // decode
  double mla_decode_flops_per_us = 0;  // decode: products with many heads

  double stream_bytes_per_us = 0;  // norms, mixes, copies

  // Collectives of 2, 4, 8 and 16 ranks.
  double all_reduce_2_us = 0, all_reduce_4_us = 0, all_reduce_8_us = 0, all_reduce_16_us = 0;
  double bus_bytes_per_us = 0;
  double peer_bytes_per_us = 0;  // one device to another
  double handoff_hidden = 0;     // part of a hand-off between stages that compute hides
  double host_bytes_per_us = 0;  // host memory to device

  // Whole steps.
  double gap_us = 0;         // launch and drain that a captured graph hides, per kernel
  double kernel_min_us = 0;  // what is left of a kernel at least
  double sampler_us = 0;
  double pipeline_factor = 0;  // measured over summed time of a stage's prefill
};

}  // namespace kernels
