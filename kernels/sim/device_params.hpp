// A device as numbers: everything the cost formulas read. Times are in microseconds, so a rate of
// 1e12 per second is 1e6 per microsecond. Values come from a file in config/devices, which says
// where each was found; the formulas that read them are in the other files of this folder.
#pragma once

#include <cstdint>

namespace kernels {

// A device whose kernels were not measured one by one (a CPU): a step costs the larger of its bytes
// and its operations over two rates, and something for every step, layer and token.
struct RooflineParams {
  double bytes_per_us = 0;  // memory, as a step streams it
  double flops_per_us = 0;  // products
  double step_us = 0;       // planning, sampling, messages
  double layer_us = 0;      // of a layer, whatever the batch
  double token_us = 0;      // of a token beside its products: norms, gates, sampling
};

// A GPU, kernel by kernel.
struct DeviceParams {
  double memory_bytes = 0;  // usable, of one device

  // Dense products, bf16.
  double multiprocessors = 0;
  double kernel_us = 0;            // the shortest kernel: launch, first load, drain
  double weight_bytes_per_us = 0;  // streaming weights
  double gemm_flops_per_us = 0;    // sustained, large products

  // Routed experts: 4-bit weights, 8-bit activations.
  double moe_us = 0;     // of a layer: permutation, launch of the grouped products, finalising
  double expert_us = 0;  // of a distinct expert
  double expert_bytes_per_us = 0;
  double expert_flops_per_us = 0;
  double expert_row_us = 0;          // of a (token, expert) pair that is moved
  double expert_imbalance_few = 0;   // the busiest of 2 to 4 expert groups over the mean
  double expert_imbalance_many = 0;  // of more groups
  double expert_exchange_us = 0;     // rows to their experts' ranks and back, of a layer
  double expert_skew = 0;            // Zipf exponent of the experts' popularity
  double expert_new_per_draft = 0;   // a draft's experts that its request did not choose already

  // Recurrent attention (KDA), heads of 128 x 128 in fp32.
  double kda_token_head_us = 0;       // prefill, of a token and head
  double kda_sequential_us = 0;       // prefill, of a token of the longest sequence
  double kda_conv_token_head_us = 0;  // prefill, of a token and head: convolution and gates
  double kda_decode_min_us = 0;
  double state_bytes_per_us = 0;       // decode: states read and written
  double kda_verify_us = 0;            // verify at least this
  double kda_verify_width_us = 0;      // and so much for every token of the window
  double kda_verify_row_us = 0;        // of a sequence's 12 heads at least this
  double kda_verify_row_width_us = 0;  // or so much for every token of its window

  // Latent attention (MLA).
  double mla_flops_per_us = 0;         // prefill
  double mla_decode_us = 0;            // decode: two kernels, the second merges splits
  double kv_bytes_per_us = 0;          // decode
  double mla_decode_flops_per_us = 0;  // decode: products of many heads with one KV head

  double stream_bytes_per_us = 0;  // norms, mixes, activations, copies

  // Between devices.
  double all_reduce_2_us = 0;  // latency among so many ranks
  double all_reduce_4_us = 0;
  double all_reduce_8_us = 0;
  double all_reduce_16_us = 0;
  double all_reduce_32_us = 0;
  double bus_bytes_per_us = 0;
  double fused_finalize = 0;  // part of a mixture's all-reduce left once it finalises the experts
  double peer_bytes_per_us = 0;  // one device to another
  double handoff_hidden = 0;     // part of a hand-off between stages that queued work hides
  double host_bytes_per_us = 0;  // host memory to device

  // Whole steps.
  double gap_us = 0;           // launch and drain that a captured graph hides, of every kernel
  double kernel_floor_us = 0;  // what is left of a kernel at least
  double sampler_us = 0;
  double pipeline_factor = 0;  // a stage's measured prefill over the sum of its kernels

  // Block drafts of seven tokens by a small model.
  double draft_us = 0;          // launches of its five layers
  double draft_params = 0;      // its weights, which every verified token runs through
  double draft_sampler_us = 0;  // of a drafted position
  double fold_us = 0;           // accepted tokens into the recurrent states

  RooflineParams roofline;
};

}  // namespace kernels
