// One replay in pictures: the arena, who runs and who waits, tokens, times, and what typical steps
// are spent on.
#pragma once

#include <string>
#include <vector>

#include "net/replay/modelled_replay.hpp"
#include "runtime/sim/step_model.hpp"

namespace net {

struct Picture {
  std::string name, svg;  // name: of its file, without .svg
};

std::vector<Picture> replay_pictures(const ModelledReplay& replay,
                                     const runtime::StepModel& model);

}  // namespace net
