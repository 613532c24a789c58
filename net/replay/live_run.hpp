// Plays a scenario on a running server, from its address to one result.
#pragma once

#include <boost/json/object.hpp>
#include <iosfwd>

#include "net/replay/scenario.hpp"

namespace net {

// {"scenario", "seed", "sessions", "server", then what LiveReplay::result() holds}: the keys of a
// modelled server's result where they mean the same. `progress`: where a bar is drawn; nullptr:
// nowhere. Throws std::runtime_error or std::invalid_argument naming the setting, or the server.
boost::json::object run_live(const Scenario& scenario, const Trace& trace, std::ostream* progress);

}  // namespace net
