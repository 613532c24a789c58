// The least work of a forward, against numbers counted by hand from the presets' shapes.
#include "runtime/model_costs.hpp"

#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <string>

#include "runtime/checkpoint_presets.hpp"
#include "runtime/model.hpp"
#include "runtime/weights.hpp"
#include "tests/support/random_model.hpp"

namespace {

using kernels::DType;
using runtime::ModelCosts;

runtime::ModelConfig preset(const std::string& name) {
  return runtime::ModelConfig::parse(boost::json::serialize(runtime::preset_config(name)), name);
}

}  // namespace

TEST_CASE("The costs of tiny-k3 are those counted by hand", "[runtime][costs]") {
  const ModelCosts costs(preset("tiny-k3"), {DType::kBF16, DType::kMXFP4}, DType::kF32);
  // KDA: q, k, v, out of 256 x 256, a gate of that size, decay 256 x 64 x 256, beta 256 x 4.
  const uint64_t kda = 4 * 65536 + 65536 + 32768 + 1024;
  // MLA: query 96 x (256 + 192), gate 256 x 128, latent 256 x 80, keys and values 64 x 256, out.
  const uint64_t mla = 43008 + 32768 + 20480 + 16384 + 32768;
  // Shared experts 3 x 256 x 192, router 256 x 16, latent 256 x 128 down and up.
  const uint64_t mixture = 147456 + 4096 + 65536;
  CHECK(costs.shared_params == 6 * kda + 3 * mla + 3 * 256 * 384 + 8 * mixture);
  CHECK(costs.shared_params == 4636672);
  CHECK(costs.head_params == 512 * 256);
  CHECK(costs.expert_params == 3 * 96 * 128);
  CHECK(costs.active_params() == 4636672 + 8 * 4 * 36864);
  CHECK(costs.mixture_layers == 8);
  CHECK(costs.shared_bytes == 2 * 4636672);
  CHECK(costs.expert_bytes == 18432 + 1152);       // nibbles and a scale for 32
  CHECK(costs.state_bytes == 6 * (65536 + 9216));  // 4 heads of 64 x 64, 3 rows of 3 x 256; fp32
  CHECK(costs.kv_row_bytes == 3 * 80 * 4);
  CHECK(costs.recurrence_flops == 6 * 7 * 4 * 64 * 64);
  CHECK(costs.absorbed_flops == 3 * 4 * 2 * (64 + 64 + 16));
  CHECK(costs.expanded_flops == 3 * 4 * 2 * (32 + 16 + 32));
}

TEST_CASE("The costs of bench-linear are those counted by hand", "[runtime][costs]") {
  const ModelCosts costs(preset("bench-linear"), {}, DType::kBF16);
  CHECK(costs.shared_params == 78700544);
  CHECK(costs.head_params == 16777216);
  CHECK(costs.expert_params == 1179648);
  CHECK(costs.expert_bytes == 2359296);
  CHECK(costs.active_params() == 130605056);
  CHECK(costs.state_bytes == 9 * (524288 + 36864));
  CHECK(costs.kv_row_bytes == 3 * 320 * 2);
  CHECK(costs.absorbed_flops == 27648);
  CHECK(costs.expanded_flops == 15360);
}

TEST_CASE("The costs of bench-k3 are those counted by hand", "[runtime][costs]") {
  const ModelCosts costs(preset("bench-k3"), {DType::kBF16, DType::kMXFP4}, DType::kF32);
  CHECK(costs.shared_params == 103104512);
  CHECK(costs.expert_params == 786432);
  CHECK(costs.expert_bytes == 417792);
  CHECK(costs.mixture_layers == 11);
  CHECK(costs.recurrence_flops == 9 * 7 * 8 * 128 * 128);
}

TEST_CASE("Costs of all weights add up to what a loaded model says it holds", "[runtime][costs]") {
  const std::string& directory = support::random_model("tiny-k3");
  const auto config = runtime::ModelConfig::load(directory);
  const auto file = runtime::WeightsFile::load(directory);
  const auto types = runtime::weight_types(config, file);
  CHECK(types.dense == DType::kBF16);
  CHECK(types.experts == DType::kMXFP4);
  const ModelCosts costs(config, types, DType::kF32);
  const auto ops = kernels::make_cpu_ops(1);
  const auto model = runtime::load_hybrid_model(config, file, *ops, {});
  const uint64_t all = costs.shared_bytes + costs.head_bytes +
                       costs.embedding_row_bytes * config.vocab +
                       uint64_t{costs.mixture_layers} * costs.experts * costs.expert_bytes;
  // The model also counts norms, taps and biases, and what panels of 16 outputs round up.
  CHECK(all < model->weight_bytes());
  CHECK(static_cast<double>(all) > 0.97 * static_cast<double>(model->weight_bytes()));
  CHECK(costs.state_bytes == model->geometry().state_bytes);
}

TEST_CASE("A decode step reads each weight once and each sequence's state twice",
          "[runtime][costs]") {
  const ModelCosts costs(preset("bench-linear"), {}, DType::kF32);
  const auto one = runtime::decode_costs(costs, {1, 1000, 44});
  CHECK(one.bytes ==
        2.0 * (78700544 + 16777216) + 44.0 * 2359296 + 2048 + 2.0 * 5050368 + 1000.0 * 3840);
  CHECK(one.flops == 2.0 * (130605056 + 16777216) + 9.0 * 7 * 8 * 128 * 128 + 1000.0 * 27648);
  const auto sixteen = runtime::decode_costs(costs, {16, 1000, 44});
  CHECK(sixteen.flops == 16 * one.flops);
  CHECK(sixteen.bytes - one.bytes == 15 * (2048 + 2.0 * 5050368 + 1000.0 * 3840));
  CHECK(one.seconds(30e9, 200e9) == one.bytes / 30e9);
  CHECK(sixteen.seconds(30e9, 20e9) == sixteen.flops / 20e9);
}

TEST_CASE("A prompt computes its head once and attends to each earlier position",
          "[runtime][costs]") {
  const ModelCosts costs(preset("bench-linear"), {}, DType::kF32);
  const auto one = runtime::prefill_costs(costs, 1);
  const auto two = runtime::prefill_costs(costs, 2);
  CHECK(one.flops == 2.0 * (130605056 + 16777216) + 9.0 * 7 * 8 * 128 * 128 + 15360);
  CHECK(two.flops - one.flops == 2.0 * 130605056 + 9.0 * 7 * 8 * 128 * 128 + 2 * 15360);
}
