#include "kernels/sim/attention_cost.hpp"

#include <algorithm>

namespace kernels {
namespace {

constexpr double kHeadBytes = 128 * 128 * 4;  // that prefill and verify were measured with
constexpr double kVerifyHeads = 12;           // of a rank, same

// Prefill's and verify's work is proportional to the state's elements.
double relative_heads(const KdaWork& work) { return work.heads * (work.head_bytes / kHeadBytes); }

}  // namespace

double kda_prefill_us(const DeviceParams& device, const KdaWork& work, double tokens,
                      double longest) {
  if (tokens == 0) return 0;
  const double per_token =
      relative_heads(work) * (device.kda_token_head_us + device.kda_conv_token_head_us);
  return std::max(device.kernel_us, tokens * per_token + longest * device.kda_sequential_us);
}

double kda_decode_us(const DeviceParams& device, const KdaWork& work, double rows) {
  if (rows == 0) return 0;
  const double bytes = 2 * rows * work.heads * work.head_bytes;  // read and written
  return std::max(device.kda_decode_min_us, device.kernel_us + bytes / device.state_bytes_per_us);
}

double kda_verify_us(const DeviceParams& device, const KdaWork& work, double rows, double width) {
  if (rows == 0) return 0;
  const double least = device.kda_verify_us + device.kda_verify_width_us * width;
  const double row = std::max(device.kda_verify_row_us, device.kda_verify_row_width_us * width) *
                     (relative_heads(work) / kVerifyHeads);
  return std::max(least, device.kernel_us + rows * row);
}

double mla_prefill_us(const DeviceParams& device, const MlaWork& work, double pairs) {
  if (pairs == 0) return 0;
  const double flops = 2 * work.heads * (work.qk_dims + work.v_dims) * pairs;
  return std::max(device.kernel_us, flops / device.mla_flops_per_us);
}

double mla_decode_us(const DeviceParams& device, const MlaWork& work, double cached, double width) {
  if (cached == 0) return 0;
  const double bytes = cached * work.row_bytes;
  const double flops = 2 * work.heads * (work.row_dims + work.latent) * cached * width;
  return device.mla_decode_us +
         std::max(bytes / device.kv_bytes_per_us, flops / device.mla_decode_flops_per_us);
}

}  // namespace kernels
