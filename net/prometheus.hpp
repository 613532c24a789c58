// The engine's counters as Prometheus text. SGLang's metric names with our prefix, so that its
// dashboards need one replacement; what SGLang has no name for gets one of ours.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "actors/service.hpp"

namespace net {

struct HttpMetrics {
  uint32_t connections = 0;             // open now
  uint64_t refused_connections = 0;     // over the limit, since start
  std::array<uint64_t, 6> responses{};  // since start, by status / 100
};

std::string prometheus_text(const actors::ServiceMetrics& engine, const actors::ServiceInfo& info,
                            const HttpMetrics& http);

}  // namespace net
