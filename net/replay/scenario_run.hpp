// Plays a scenario on its modelled server, from files to one result.
#pragma once

#include <boost/json/object.hpp>
#include <iosfwd>
#include <string>

#include "net/replay/scenario.hpp"

namespace net {

// {"scenario", "seed", "trace", "server", then what ModelledReplay::result() holds}. Equal
// scenarios and traces give equal objects.
boost::json::object run_scenario(const Scenario& scenario, const Trace& trace,
                                 const std::string& config_directory);

// The same for people.
void print_result(const boost::json::object& result, std::ostream& out);

}  // namespace net
