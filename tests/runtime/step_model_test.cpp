// Whole steps of K3 on modelled devices, against a second implementation of the formulas (a script
// that shares no code), and what must hold of any device.
#include "runtime/sim/step_model.hpp"

#include <catch2/catch.hpp>

#include "runtime/sim/expert_routing.hpp"
#include "runtime/sim/pipeline_clock.hpp"

namespace {

using runtime::StepModel;
using runtime::StepOptions;
using runtime::StepShape;

const std::string kConfig = SLUICE_SOURCE_DIR "/config/";

runtime::DeviceFile device(const std::string& name) {
  return runtime::read_device(kConfig + "devices/" + name + ".toml");
}
const runtime::ModelGeometry& k3() {
  static const auto geometry = runtime::ModelGeometry::load(kConfig + "geometries/kimi-k3.json");
  return geometry;
}
StepModel model(const std::string& name, const std::string& layout,
                const StepOptions& options = {}) {
  return {device(name), k3(), runtime::parse_layout(layout), options};
}

StepShape decode(uint32_t rows, uint64_t position, uint32_t width = 1) {
  StepShape shape;
  for (uint32_t i = 0; i < rows; ++i) shape.add_decode(position, width);
  return shape;
}
StepShape prefill(uint64_t position, uint64_t count) {
  StepShape shape;
  shape.add_prefill(position, count);
  return shape;
}

auto about(double us) { return Approx(us).epsilon(1e-9); }

}  // namespace

TEST_CASE("Steps of TP8 on GB300 are those of a second implementation", "[runtime][sim]") {
  const StepModel tp8 = model("gb300", "TP8");
  CHECK(tp8.step_us(decode(1, 1024)) == about(8989.426478236612));
  CHECK(tp8.step_us(decode(256, 8704)) == about(66694.57955246659));
  CHECK(tp8.step_us(decode(16, 4096, 8)) == about(29797.65163993782));
  CHECK(tp8.step_us(prefill(0, 8192)) == about(398519.4794493487));
  CHECK(tp8.step_us(prefill(8192, 4096)) == about(226442.19074279937));
  StepShape mixed = decode(32, 8704);
  mixed.add_prefill(0, 2048);
  CHECK(tp8.step_us(mixed) == about(143042.0854153749));
  CHECK(tp8.step_us({}) == 0);
}

TEST_CASE(
    "Steps of sharded positions, whole experts, copies and stages are those of a second "
    "implementation",
    "[runtime][sim]") {
  StepOptions fp8, split;
  fp8.kv = runtime::KvType::kFp8;
  split.sequence_parallel = true;
  const StepModel dcp8 = model("gb300", "TP8xDCP8", fp8);
  CHECK(dcp8.step_us(decode(64, 100000)) == about(35823.90631300794));
  CHECK(dcp8.step_us(prefill(4096, 1024)) == about(94338.43052831189));
  StepShape two = prefill(0, 8192);
  two.add_prefill(0, 8192);
  CHECK(model("gb200", "TEP16", split).step_us(two) == about(424419.68738302676));
  CHECK(model("gb300", "TEP16xDCP8xDP2").step_us(decode(100, 2000)) == about(20842.456936193255));
  const StepModel pp16 = model("gb200", "PP16");
  CHECK(pp16.stage_us(0, prefill(0, 8192)) == about(99507.95895310039));
  CHECK(pp16.stage_us(7, prefill(0, 8192)) == about(117182.63544682087));
  CHECK(pp16.stage_us(15, prefill(0, 8192)) == about(115359.9375929119));
  CHECK(pp16.handoff_us(0, prefill(0, 8192)) == about(335.54432));
  CHECK(pp16.handoff_us(14, prefill(0, 8192)) == about(1509.94944));
  CHECK(pp16.step_us(prefill(0, 8192)) == about(1872368.7395000302));
  CHECK(model("gb200", "PP8xTP2").step_us(prefill(0, 8192)) == about(1136999.7692799354));
}

TEST_CASE("A breakdown adds up to its step and counts its kernels", "[runtime][sim]") {
  const StepModel tp8 = model("gb300", "TP8");
  const auto parts = tp8.breakdown(decode(8, 4096));
  CHECK(parts.total_us() == tp8.step_us(decode(8, 4096)));
  using runtime::CostClass;
  CHECK(parts[CostClass::kExperts].launches == 92);
  CHECK(parts[CostClass::kKda].launches == 69);
  CHECK(parts[CostClass::kMla].launches == 24);
  // Attention of 93 layers, 92 mixtures, a dense layer, the embedding.
  CHECK(parts[CostClass::kCollectives].launches == 93 + 92 + 1 + 1);
  // KDA: wide, thin, out; MLA: latents, queries, absorbed keys and values, out; mixture: front,
  // shared down, up; the dense layer's two; the head.
  CHECK(parts[CostClass::kProjections].launches == 69 * 3 + 24 * 5 + 92 * 3 + 2 + 1);
  const StepModel unfused = model("gb300", "TP8", runtime::bring_up_options(0));
  CHECK(unfused.breakdown(decode(8, 4096))[CostClass::kProjections].launches ==
        69 * 3 + 24 * 5 + 92 * 5 + 2 + 1);
  CHECK(parts[CostClass::kHandoff].launches == 0);
  CHECK(model("gb300", "PP8").breakdown(prefill(0, 64))[CostClass::kHandoff].launches == 7);
}

TEST_CASE("More work never takes less time", "[runtime][sim]") {
  const StepModel tp8 = model("gb300", "TP8");
  double last = 0;
  for (uint32_t rows = 1; rows <= 256; rows += 5) {
    const double us = tp8.step_us(decode(rows, 4096));
    CHECK(us > last);
    last = us;
  }
  last = 0;
  for (uint64_t position = 64; position <= 1 << 20; position *= 2) {
    const double us = tp8.step_us(decode(32, position));
    CHECK(us >= last);
    last = us;
  }
  last = 0;
  for (uint32_t width = 1; width <= 8; ++width) {
    const double us = tp8.step_us(decode(16, 4096, width));
    CHECK(us > last);
    last = us;
  }
  last = 0;
  for (uint64_t count = 64; count <= 16384; count += 960) {
    const double us = tp8.step_us(prefill(0, count));
    CHECK(us > last);
    last = us;
  }
  CHECK(tp8.step_us(prefill(65536, 1024)) > tp8.step_us(prefill(0, 1024)));
}

TEST_CASE("A shape's order of rows does not matter, and advancing is adding a position",
          "[runtime][sim]") {
  StepShape a, b;
  a.add_decode(10);
  a.add_decode(20);
  a.add_prefill(5, 7);
  b.add_prefill(5, 7);
  b.add_decode(20);
  b.add_decode(10);
  CHECK(a == b);
  StepShape now = decode(3, 100);
  now.advance_decode();
  CHECK(now == decode(3, 101));
}

TEST_CASE("Each era of fusions makes a decode step shorter", "[runtime][sim]") {
  StepOptions options = runtime::bring_up_options(1000);
  double last = model("gb300", "TP8", options).step_us(decode(1, 1024));
  for (bool runtime::Fusions::*flag :
       {&runtime::Fusions::launches, &runtime::Fusions::kernels, &runtime::Fusions::communication,
        &runtime::Fusions::overlap}) {
    options.fusions.*flag = true;
    const double us = model("gb300", "TP8", options).step_us(decode(1, 1024));
    CHECK(us < last);
    last = us;
  }
  CHECK(last == model("gb300", "TP8").step_us(decode(1, 1024)));
}

TEST_CASE("A rank's memory is that of K3's tensors", "[runtime][sim]") {
  StepOptions all;
  all.memory_fraction = 1;
  runtime::DeviceFile large = device("gb300");
  large.params.memory_bytes = 2e12;
  const auto one = StepModel(large, k3(), runtime::parse_layout("TP1"), all).memory();
  // All tensors are 1,560,860,324,864 bytes; the vision tower and its projector, 4.5e8 weights in
  // bf16, are not counted, nor are norms and biases.
  CHECK(one.weight_bytes == Approx(1560860324864.0 - 2 * 4.47e8).epsilon(2e-4));
  CHECK(one.state_bytes == 434110464.0 + 2 * 7630848);
  CHECK(one.kv_position_bytes == 27648);
  const auto tp8 = model("gb300", "TP8").memory();
  CHECK(tp8.state_bytes == one.state_bytes / 8);
  CHECK(tp8.kv_bytes_per_token() == 27648);
  CHECK(tp8.arena_bytes == Approx(0.9 * 298e9 - tp8.weight_bytes));
  const auto dcp8 = model("gb300", "TP8xDCP8").memory();
  CHECK(dcp8.kv_bytes_per_token() == 27648.0 / 8);
  // q_b and its absorbed key part, seven eighths of them, of 24 layers in bf16.
  CHECK(dcp8.weight_bytes - tp8.weight_bytes ==
        Approx(24 * 2 * 7.0 / 8 * (18432.0 * 1536 + 96 * 128 * 512)));
  const auto pp8 = model("gb300", "PP8").memory();
  CHECK(pp8.kv_position_bytes == 4 * 576 * 2);  // four of a stage's twelve layers at most
}

TEST_CASE("Weights that do not fit are refused with the arithmetic", "[runtime][sim]") {
  CHECK_THROWS_WITH(model("gb200", "TP8"),
                    Catch::Contains("layout TP8 on gb200: a rank's weights take 205") &&
                        Catch::Contains("and 178.8 GB are given; expected more ranks"));
  CHECK_THROWS_WITH(model("h200", "TP8"), Catch::Contains("on h200"));
  CHECK_NOTHROW(model("h200", "TEP16"));
  StepOptions none;
  none.memory_fraction = 0;
  CHECK_THROWS_WITH(model("gb300", "TP8", none), Catch::Contains("memory-fraction"));
  CHECK_THROWS_WITH(model("cpu-epyc", "TP2"), Catch::Contains("one rank only"));
}

TEST_CASE("Host memory loads a rank's own positions", "[runtime][sim]") {
  const double tp8 = model("gb300", "TP8").host_load_us(100000);
  CHECK(tp8 == Approx(100000.0 * 27648 / 97e3));
  CHECK(model("gb300", "TP8xDCP8").host_load_us(100000) == Approx(tp8 / 8));
}

TEST_CASE("Drafts cost a small model's products beside fixed launches", "[runtime][sim]") {
  const StepModel tp8 = model("gb300", "TP8");
  const double flops = 16 * 2 * 2.25e9 + 7.0 * 2 * 2 * 7168 * 163840;
  CHECK(tp8.draft_us(decode(2, 100, 8)) == Approx(700 + flops / (8 * 1.9e9) + 7 * 30 + 60));
  CHECK(tp8.draft_us(prefill(0, 100)) == 0);
}

TEST_CASE("A roofline device prices a small model's step by bytes or operations",
          "[runtime][sim]") {
  const auto tiny = runtime::ModelGeometry::load(kConfig + "models/tiny-k3");
  const runtime::DeviceFile cpu = device("cpu-epyc");
  StepOptions options;
  options.kv = runtime::KvType::kF32;
  const StepModel one(cpu, tiny, runtime::parse_layout("TP1"), options);
  const double decode_us = one.step_us(decode(1, 100)), prefill_us = one.step_us(prefill(0, 512));
  CHECK(decode_us > cpu.params.roofline.step_us + 8 * cpu.params.roofline.layer_us);
  CHECK(prefill_us > 20 * decode_us);
  CHECK(prefill_us < 512 * decode_us);
}

TEST_CASE("Distinct experts grow from top-k to all of them", "[runtime][sim]") {
  const runtime::ExpertRouting even(896, 16, 0), skewed(896, 16, 0.6);
  CHECK(even.distinct(1) == Approx(16));
  CHECK(skewed.distinct(1) == Approx(16));
  CHECK(even.distinct(8) == Approx(120.3).epsilon(0.001));  // 896 (1 - (1 - 16 / 896)^8)
  CHECK(skewed.distinct(64) < even.distinct(64));
  CHECK(skewed.distinct(1e6) == Approx(896));
  CHECK(even.distinct(0) == 0);
  // Three experts that every token chooses.
  CHECK(runtime::ExpertRouting(3, 3, 0).distinct(1) == 3);
}

TEST_CASE("A pipeline works on one batch a stage and keeps their order", "[runtime][sim]") {
  const StepModel pp8 = model("gb300", "PP8");
  runtime::PipelineClock pipeline(pp8);
  const StepShape batch = prefill(0, 8192);
  const double alone = pipeline.enter(batch, 0, false);
  CHECK(alone == about(pp8.step_us(batch)));  // nothing is hidden
  double last = alone, slowest = 0;
  for (size_t i = 0; i < pp8.stage_count(); ++i) {
    slowest = std::max(slowest, pp8.stage_us(i, batch));
  }
  for (int i = 0; i < 40; ++i) {
    const double done = pipeline.enter(batch, 0, true);
    CHECK(done > last);
    last = done;
  }
  // In the long run the slowest stage decides, and hand-offs add the part that is not hidden.
  const double period = (last - alone) / 40;
  CHECK(period > slowest);
  CHECK(period < 1.15 * slowest);
  // Eight are under way: the next waits for one of them.
  CHECK(pipeline.next_entry_us() > last - 9 * slowest);
}
