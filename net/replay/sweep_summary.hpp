// The points of a sweep put side by side: those that differ by their seed alone are one, with a
// mean and a range.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "net/replay/sweep.hpp"

namespace net {

struct Spread {
  double mean = 0, low = 0, high = 0;
};

// Points with equal settings but for `seed`, in the order of the first of each.
struct SweepGroup {
  std::vector<Override> settings;  // without the seed
  std::vector<const SweepPoint*> points;

  // Over the points that have a result.
  Spread over(const std::function<double(const boost::json::object&)>& value) const;
  bool empty() const;  // there is no such point
  // The setting's value; empty: it is not of the grid.
  std::string value(std::string_view key) const;
  // "layout TP8, host-gb 100": the settings but for `without`.
  std::string name(const std::vector<std::string_view>& without) const;
};

// `sweep` must outlive it.
std::vector<SweepGroup> groups_of(const std::vector<SweepPoint>& sweep);

// A number of a result by its path: "ttft_s.p50".
double number_in(const boost::json::object& result, std::string_view path);
// Memory of a rank, arena and host, as the tokens of KV that it would hold if it held nothing else.
double cache_tokens(const boost::json::object& result);

// A row for each point, and where seeds differ a row for each group.
struct SweepTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};
SweepTable point_table(const std::vector<SweepPoint>& sweep);
SweepTable group_table(const std::vector<SweepGroup>& groups);
std::string table_text(const SweepTable& table);  // for a terminal

}  // namespace net
