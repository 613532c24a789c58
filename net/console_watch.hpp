// The live view: what runs, the arena, hits and misses, the latest moves, drawn anew every second.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "net/console_client.hpp"

namespace net {

// Until q (or Ctrl-C) in a terminal, whose screen comes back as it was; without a terminal one
// frame after the other, until nobody reads them. The exit code.
int watch(ConsoleClient& client, const boost::json::object& command, bool json);

// What one frame shows.
struct WatchFrame {
  boost::json::object stats, pool, moves;
  double moves_per_second = 0;
};
// At most `rows` lines of at most `columns` characters.
std::vector<std::string> watch_lines(const std::string& whom, const WatchFrame& frame, size_t rows,
                                     size_t columns);

}  // namespace net
