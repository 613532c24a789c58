// Time of dense and grouped matrix products on a modelled device, in microseconds.
#pragma once

#include "kernels/sim/device_params.hpp"

namespace kernels {

struct ProductShape {
  double m = 0, n = 0, k = 0;  // [m, k] x [k, n]
};

// bf16. Up to 128 rows the weights' bytes decide. Above, 128 x 128 tiles run in waves over the
// multiprocessors, and a wave that is begun costs a whole one: a staircase in m. From 8 waves on a
// persistent kernel hides the ragged end.
double product_us(const DeviceParams& device, const ProductShape& shape);
double product_waves(const DeviceParams& device, const ProductShape& shape);  // 0 up to 128 rows

struct ExpertWork {
  double tokens = 0;
  double distinct = 0;  // experts that at least one token chose, of all groups together
  double top_k = 0;
  double expert_params = 0;
  double expert_bytes = 0;
  double slices = 1;  // ranks that share each expert
  double groups = 1;  // parts the experts are dealt to
};

// The busiest rank's time in a layer of routed experts: weights of its distinct experts, and rows
// moved and multiplied.
double experts_us(const DeviceParams& device, const ExpertWork& work);

}  // namespace kernels
