#include "runtime/sim/device_keys.hpp"

#include <array>

namespace runtime {
namespace {

using kernels::DeviceParams;

template <double DeviceParams::*Field>
double& at(DeviceParams& params) {
  return params.*Field;
}
template <double kernels::RooflineParams::*Field>
double& roofline_at(DeviceParams& params) {
  return params.roofline.*Field;
}

constexpr std::string_view kTime = "us", kBytes = "B", kByteRate = "B/us", kFlopRate = "flop/us",
                           kNumber = "1";

constexpr auto kKernelKeys = std::to_array<DeviceKey>({
    {"memory_bytes", kBytes, at<&DeviceParams::memory_bytes>, true},
    {"multiprocessors", kNumber, at<&DeviceParams::multiprocessors>, true},
    {"kernel_us", kTime, at<&DeviceParams::kernel_us>, true},
    {"weight_bytes_per_us", kByteRate, at<&DeviceParams::weight_bytes_per_us>, true},
    {"gemm_flops_per_us", kFlopRate, at<&DeviceParams::gemm_flops_per_us>, true},
    {"moe_us", kTime, at<&DeviceParams::moe_us>, false},
    {"expert_us", kTime, at<&DeviceParams::expert_us>, false},
    {"expert_bytes_per_us", kByteRate, at<&DeviceParams::expert_bytes_per_us>, true},
    {"expert_flops_per_us", kFlopRate, at<&DeviceParams::expert_flops_per_us>, true},
    {"expert_row_us", kTime, at<&DeviceParams::expert_row_us>, false},
    {"expert_imbalance_few", kNumber, at<&DeviceParams::expert_imbalance_few>, true},
    {"expert_imbalance_many", kNumber, at<&DeviceParams::expert_imbalance_many>, true},
    {"expert_exchange_us", kTime, at<&DeviceParams::expert_exchange_us>, false},
    {"expert_skew", kNumber, at<&DeviceParams::expert_skew>, false},
    {"expert_new_per_draft", kNumber, at<&DeviceParams::expert_new_per_draft>, false},
    {"kda_token_head_us", kTime, at<&DeviceParams::kda_token_head_us>, true},
    {"kda_sequential_us", kTime, at<&DeviceParams::kda_sequential_us>, false},
    {"kda_conv_token_head_us", kTime, at<&DeviceParams::kda_conv_token_head_us>, false},
    {"kda_decode_min_us", kTime, at<&DeviceParams::kda_decode_min_us>, false},
    {"state_bytes_per_us", kByteRate, at<&DeviceParams::state_bytes_per_us>, true},
    {"kda_verify_us", kTime, at<&DeviceParams::kda_verify_us>, false},
    {"kda_verify_width_us", kTime, at<&DeviceParams::kda_verify_width_us>, false},
    {"kda_verify_row_us", kTime, at<&DeviceParams::kda_verify_row_us>, false},
    {"kda_verify_row_width_us", kTime, at<&DeviceParams::kda_verify_row_width_us>, false},
    {"mla_flops_per_us", kFlopRate, at<&DeviceParams::mla_flops_per_us>, true},
    {"mla_decode_us", kTime, at<&DeviceParams::mla_decode_us>, false},
    {"kv_bytes_per_us", kByteRate, at<&DeviceParams::kv_bytes_per_us>, true},
    {"mla_decode_flops_per_us", kFlopRate, at<&DeviceParams::mla_decode_flops_per_us>, true},
    {"stream_bytes_per_us", kByteRate, at<&DeviceParams::stream_bytes_per_us>, true},
    {"all_reduce_2_us", kTime, at<&DeviceParams::all_reduce_2_us>, false},
    {"all_reduce_4_us", kTime, at<&DeviceParams::all_reduce_4_us>, false},
    {"all_reduce_8_us", kTime, at<&DeviceParams::all_reduce_8_us>, false},
    {"all_reduce_16_us", kTime, at<&DeviceParams::all_reduce_16_us>, false},
    {"all_reduce_32_us", kTime, at<&DeviceParams::all_reduce_32_us>, false},
    {"bus_bytes_per_us", kByteRate, at<&DeviceParams::bus_bytes_per_us>, true},
    {"fused_finalize", kNumber, at<&DeviceParams::fused_finalize>, true},
    {"peer_bytes_per_us", kByteRate, at<&DeviceParams::peer_bytes_per_us>, true},
    {"handoff_hidden", kNumber, at<&DeviceParams::handoff_hidden>, false},
    {"host_bytes_per_us", kByteRate, at<&DeviceParams::host_bytes_per_us>, true},
    {"gap_us", kTime, at<&DeviceParams::gap_us>, false},
    {"kernel_floor_us", kTime, at<&DeviceParams::kernel_floor_us>, false},
    {"sampler_us", kTime, at<&DeviceParams::sampler_us>, false},
    {"pipeline_factor", kNumber, at<&DeviceParams::pipeline_factor>, true},
    {"draft_us", kTime, at<&DeviceParams::draft_us>, false},
    {"draft_params", kNumber, at<&DeviceParams::draft_params>, false},
    {"draft_sampler_us", kTime, at<&DeviceParams::draft_sampler_us>, false},
    {"fold_us", kTime, at<&DeviceParams::fold_us>, false},
});

constexpr auto kRooflineKeys = std::to_array<DeviceKey>({
    {"memory_bytes", kBytes, at<&DeviceParams::memory_bytes>, true},
    {"expert_skew", kNumber, at<&DeviceParams::expert_skew>, false},
    {"bytes_per_us", kByteRate, roofline_at<&kernels::RooflineParams::bytes_per_us>, true},
    {"flops_per_us", kFlopRate, roofline_at<&kernels::RooflineParams::flops_per_us>, true},
    {"step_us", kTime, roofline_at<&kernels::RooflineParams::step_us>, false},
    {"layer_us", kTime, roofline_at<&kernels::RooflineParams::layer_us>, false},
    {"token_us", kTime, roofline_at<&kernels::RooflineParams::token_us>, false},
});

}  // namespace

std::span<const DeviceKey> kernel_keys() { return kKernelKeys; }
std::span<const DeviceKey> roofline_keys() { return kRooflineKeys; }

}  // namespace runtime
