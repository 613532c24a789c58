// Layouts by name, and the combinations that are refused.
#include "runtime/sim/parallel_layout.hpp"

#include <catch2/catch.hpp>

#include "runtime/sim/model_geometry.hpp"

namespace {

using runtime::ParallelLayout;
using runtime::parse_layout;

const runtime::ModelGeometry& k3() {
  static const auto geometry =
      runtime::ModelGeometry::load(SLUICE_SOURCE_DIR "/config/geometries/kimi-k3.json");
  return geometry;
}

void check_refused(const std::string& text, const std::string& message) {
  CAPTURE(text);
  CHECK_THROWS_WITH(runtime::check_layout(parse_layout(text), k3()), Catch::Contains(message));
}

}  // namespace

TEST_CASE("A layout's name says it all", "[runtime][sim]") {
  CHECK(parse_layout("TP8") == ParallelLayout{8, 1, 1, 1, 1});
  CHECK(parse_layout("tep16") == ParallelLayout{16, 16, 1, 1, 1});
  CHECK(parse_layout("PP8xTP2") == ParallelLayout{2, 1, 8, 1, 1});
  CHECK(parse_layout("PP16") == ParallelLayout{1, 1, 16, 1, 1});
  CHECK(parse_layout("DCP8") == ParallelLayout{8, 1, 1, 8, 1});
  CHECK(parse_layout("TP16+EP16-DCP8xDP2") == ParallelLayout{16, 16, 1, 8, 2});
  CHECK(parse_layout("TP8xEP2").expert_slices() == 4);
  CHECK(parse_layout("PP8xTP2").ranks() == 16);
  CHECK(parse_layout("TP16xEP16xDP2").attention_ranks() == 8);
  for (const std::string name :
       {"TP1", "TP8", "TEP16", "PP8xTP1", "PP4xTP2", "TP8xDCP8", "TP8xEP4", "TEP16xDCP8xDP2"}) {
    CHECK(runtime::name_of(parse_layout(name)) == name);
    CHECK_NOTHROW(runtime::check_layout(parse_layout(name), k3()));
  }
}

TEST_CASE("A layout that cannot be read is refused", "[runtime][sim]") {
  CHECK_THROWS_WITH(parse_layout(""), Catch::Contains("is empty; expected one such as TP8"));
  CHECK_THROWS_WITH(parse_layout("XP8"), Catch::Contains("\"XP\" is unknown"));
  CHECK_THROWS_WITH(parse_layout("TP"), Catch::Contains("cannot be read at character 3"));
  CHECK_THROWS_WITH(parse_layout("TP8/EP8"), Catch::Contains("cannot be read at character 4"));
  CHECK_THROWS_WITH(parse_layout("TP8xTP2"), Catch::Contains("TP is given twice"));
  CHECK_THROWS_WITH(parse_layout("TP8xTEP8"), Catch::Contains("TP is given twice"));
  CHECK_THROWS_WITH(parse_layout("TP99999"), Catch::Contains("above 1024"));
}

TEST_CASE("A combination without a formula is refused with the reason", "[runtime][sim]") {
  check_refused("TP6", "TP6 has no measured collectives");
  check_refused("TP8xEP3", "EP3 does not divide TP 8");
  check_refused("TP4xDCP8", "DCP8 does not divide the ranks of one copy of the attention, 4");
  check_refused("PP2xTP8xDCP8", "stages are for prefill, DCP for decode");
  check_refused("PP2xTP8xEP8xDP2", "pipeline stages and copies of the attention");
  check_refused("TP8xDP2", "whole experts on each rank: EP8");
  check_refused("PP100", "more stages than the model's 93 layers");
}
