// Plays a scenario on its modelled server, from files to one result.
#pragma once

#include <boost/json/object.hpp>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "net/replay/replay_pictures.hpp"
#include "net/replay/scenario.hpp"

namespace net {

// {"scenario", "seed", "trace", "server", then what ModelledReplay::result() holds}. Equal
// scenarios and traces give equal objects. `pictures`: where they are wanted too. Without `skip`
// every step is made by itself; the result is the same.
boost::json::object run_scenario(const Scenario& scenario, const Trace& trace,
                                 const std::string& config_directory,
                                 std::vector<Picture>* pictures = nullptr, bool skip = true);

// Its rows for people: a name and a value each, groups as one row.
std::vector<std::pair<std::string, std::string>> result_rows(const boost::json::object& result);
void print_result(const boost::json::object& result, std::ostream& out);

}  // namespace net
