// The counters of a Sluice server's /metrics: what it did between two readings, in the words of a
// modelled server's result.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace net {

class ServerCounters {
 public:
  ServerCounters() = default;
  // Prometheus text. Of a metric with a label `kind`, each is one of its own: "name.state".
  explicit ServerCounters(std::string_view text);

  double value(const std::string& name) const;  // without the prefix; 0 where there is none

 private:
  std::map<std::string, double, std::less<>> values_;
};

// What was in use at most, as far as was seen: rows, and blocks that were not free.
struct PeakUse {
  double rows = 0, states = 0, pages = 0;
  void see(const ServerCounters& now);
};

// "kv_hit_tokens", "steps", "moves", ... of the time between both readings.
boost::json::object server_result(const ServerCounters& before, const ServerCounters& after,
                                  const PeakUse& peak, double elapsed_s);

}  // namespace net
