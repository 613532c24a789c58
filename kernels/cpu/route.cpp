#include "kernels/cpu/route.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kernels::cpu {
namespace {

constexpr float kWeightEps = 1e-20f;  // keeps a row whose scores all underflow to 0 finite

}  // namespace

void choose_experts(const RouteArgs& args, const float* score, uint32_t* expert, float* weight) {
  const auto key_of = [&](size_t id) {
    const float key = args.bias == nullptr ? score[id] : score[id] + args.bias[id];
    return std::isnan(key) ? -std::numeric_limits<float>::infinity() : key;
  };
  // Insertion into a list in descending key. Ids ascend, so moving past strictly smaller keys only
  // keeps the lower id of a tie in front. `weight` holds the keys meanwhile.
  size_t count = 0;
  for (size_t id = 0; id < args.experts; ++id) {
    const float key = key_of(id);
    if (count == args.top_k && !(key > weight[count - 1])) continue;
    size_t at = count < args.top_k ? count++ : count - 1;
    for (; at > 0 && weight[at - 1] < key; --at) {
      weight[at] = weight[at - 1];
      expert[at] = expert[at - 1];
    }
    weight[at] = key;
    expert[at] = static_cast<uint32_t>(id);
  }
  std::sort(expert, expert + count);
  float total = 0;
  for (size_t i = 0; i < count; ++i) total += score[expert[i]];
  for (size_t i = 0; i < count; ++i) {
    const float share =
        args.renormalise ? score[expert[i]] / (total + kWeightEps) : score[expert[i]];
    weight[i] = share * args.scale;
  }
}

}  // namespace kernels::cpu
