// A sweep in pictures: the frontier of throughput and speed, throughput against concurrency, hit
// rate against memory; each where the grid varies what it is about.
#pragma once

#include <string>
#include <vector>

#include "net/replay/replay_pictures.hpp"
#include "net/replay/sweep_summary.hpp"

namespace net {

std::vector<Picture> sweep_pictures(const std::vector<SweepGroup>& groups);

// Tables, pictures and the scenario, as one page.
std::string sweep_report(const Sweep& sweep);

}  // namespace net
