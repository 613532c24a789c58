// Prefill and decode apart on GB300, 8192 tokens in and 1024 out (the article's frontier).
#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/sim/figure_inputs.hpp"
#include "runtime/sim/pd_rates.hpp"
#include "runtime/sim/prefill_load.hpp"

namespace runtime {
namespace {

constexpr uint32_t kBatchMax = 256;  // running requests of one decode server

StepOptions fp8_cache() {
  StepOptions options;
  options.kv = KvType::kFp8;  // [A]: not stated; bf16 costs TP8 6 ms at 256 requests
  return options;
}

// A saturated prefill server of eight GB300 in stages.
double prefill_server_rate(const FigureInputs& inputs) {
  PrefillLoad load;
  load.clients = 64;
  return prefill_rate(inputs.model(inputs.gb300, "PP8xTP1"), load).tokens_per_s;
}

class Frontier {
 public:
  explicit Frontier(const FigureInputs& inputs)
      : prefill_tps_(prefill_server_rate(inputs)),
        tp8_(inputs.model(inputs.gb300, "TP8", fp8_cache())),
        dcp8_(inputs.model(inputs.gb300, "TP8xDCP8", fp8_cache())) {}

  PdCluster cluster(const StepModel& decode, uint32_t prefill_servers,
                    uint32_t decode_servers) const {
    PdCluster cluster;
    cluster.decode = &decode;
    cluster.decode_servers = decode_servers;
    cluster.prefill_tokens_per_s = prefill_servers * prefill_tps_;
    cluster.devices = 8 * prefill_servers + decode.layout().ranks() * decode_servers;
    return cluster;
  }
  const StepModel& tp8() const { return tp8_; }
  const StepModel& dcp8() const { return dcp8_; }

 private:
  double prefill_tps_;
  StepModel tp8_, dcp8_;
};

void add_ends(const Frontier& frontier, FigureGroup group) {
  const double dcp8 =
      pd_rates(frontier.cluster(frontier.dcp8(), 2, 2), kBatchMax).device_tokens_per_s;
  const double tp8 =
      pd_rates(frontier.cluster(frontier.tp8(), 1, 1), kBatchMax).device_tokens_per_s;
  group.add("2 PP8 : 2 DCP8, 256 requests each", "tok/s/GPU", dcp8, "decode-bound, fp8 KV [A]")
      .against(2633)
      .within(0.15);
  group
      .add("PP8 : TP8, 256 requests", "tok/s/GPU", tp8, "decode-bound, fp8 KV [A]; main sweep 2715")
      .against(2808)
      .within(0.2);
  group.add("DCP8 over TP8", "ratio", dcp8 / tp8).against(2633.0 / 2808).at_least(0.8).at_most(1.2);
  const struct {
    uint32_t decoders;
    double published;
  } saturated[] = {{2, 1910}, {3, 1415}, {4, 1156}};
  for (const auto& arm : saturated) {
    const auto cluster = frontier.cluster(frontier.tp8(), 1, arm.decoders);
    group
        .add("PP8 : " + std::to_string(arm.decoders) + " TP8, saturated", "tok/s/GPU",
             pd_rates(cluster, kBatchMax).device_tokens_per_s,
             "prefill-bound: pipeline_factor again")
        .against(arm.published);
  }
  const PdRates interactive = pd_rates(frontier.cluster(frontier.tp8(), 1, 4), 5);
  group.add("PP8 : 4 TP8, 5 requests each", "tok/s/user", interactive.user_tokens_per_s, "")
      .against(86.8)
      .at_least(80);
  group.add("same", "tok/s/GPU", interactive.device_tokens_per_s, "").against(365).at_least(300);
}

// Step times at the points' batches, which Little's law gives.
struct StepErrors {
  double sum = 0, sizes = 0, largest = 0;
  uint32_t points = 0;
  void add(double error) {
    sum += error;
    sizes += std::fabs(error);
    largest = std::max(largest, std::fabs(error));
    ++points;
  }
  double mean() const { return sum / std::max(points, 1u); }
  double mean_size() const { return sizes / std::max(points, 1u); }
};

void add_points(const FigureInputs& inputs, FigureGroup group) {
  std::map<std::string, StepModel> models;
  std::map<std::string, StepErrors> arms;  // by layout and sweep
  StepErrors all;                          // TP8 and DCP8 of the main sweep: six arms
  for (const PdPoint& point : inputs.pd_points) {
    const std::string layout = name_of(point.decode);
    const auto model =
        models.try_emplace(layout, inputs.model(inputs.gb300, layout, fp8_cache())).first;
    PdCluster cluster;
    cluster.decode = &model->second;
    const double answers =
        point.device_tps * point.devices / (1 + cluster.prompt_tokens / cluster.answer_tokens);
    const double batch = answers / point.user_tps / point.decode_servers;
    const auto whole = static_cast<uint32_t>(std::max(1.0, std::round(batch)));
    const double error = pd_step_us(cluster, whole) * point.user_tps / 1e6 - 1;
    arms[layout + " decode, " + point.sweep + " sweep"].add(error);
    if (point.sweep == "main" && point.decode.tensor == 8 && point.decode.experts == 1) {
      all.add(error);
    }
  }
  group
      .add("step time, six arms, largest error", "part", all.largest,
           std::to_string(all.points) + " points; batch by Little's law; fp8 KV [A]")
      .at_most(0.2);
  group.add("same, mean error", "part", all.mean_size()).at_most(0.1);
  for (const auto& [arm, errors] : arms) {
    const char* note = arm.starts_with("TEP") ? "; decode with whole experts on a rank costs far "
                                                "more than its kernels: not modelled"
                                              : "";
    group
        .add(arm + ", step time", "model/real", 1 + errors.mean(),
             std::to_string(errors.points) + " points" + note)
        .against(1);
  }
}

}  // namespace

void add_pd_figures(const FigureInputs& inputs, std::vector<DeviceFigure>& figures) {
  add_ends(Frontier(inputs), {"(c) prefill and decode apart, GB300 (the article)", figures});
  add_points(inputs, {"(c) decode steps at 69 points of the frontier, GB300", figures});
}

}  // namespace runtime
