// A scenario played at every point of a grid, each in a process of its own. Everything is in one
// directory: for each point the scenario it plays (run-*.toml) and its result (run-*.json), and a
// report over all of them. A point whose result is there and whose scenario has not changed is not
// played again, so a sweep that was stopped goes on.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "net/replay/sweep_figures.hpp"
#include "net/replay/sweep_grid.hpp"

namespace net {

struct SweepOptions {
  std::string scenario, directory;
  std::string traces;  // as locate_traces() takes it
  std::vector<GridAxis> grid;
  std::vector<Override> settings;  // of every point
  size_t jobs = 1;
  std::string program;                 // sluice-replay
  std::vector<std::string> arguments;  // for `run`, beside the scenario
};

struct SweepPoint {
  std::vector<Override> settings;  // the grid's
  std::string name;                // of its files, without their endings
  std::string scenario;            // TOML
  boost::json::object result;      // empty: it failed
};

class Sweep {
 public:
  // Throws std::runtime_error or std::invalid_argument for a point that cannot be, before any is
  // played.
  explicit Sweep(const SweepOptions& options);

  // Plays what is missing and tells `log` as it goes. False: some failed, and it said which.
  bool run(std::ostream& log);
  const std::vector<SweepPoint>& points() const { return points_; }
  // What the scenario holds the points to, as far as they were played.
  std::vector<runtime::DeviceFigure> figures() const;
  // The scenario's own name, else its file's.
  const std::string& name() const { return name_; }
  const std::string& scenario() const { return scenario_; }  // that the grid is put on

 private:
  std::string file(const SweepPoint& point, const char* ending) const;
  bool is_done(const SweepPoint& point) const;

  SweepOptions options_;
  std::string name_, scenario_;
  std::vector<SweepPoint> points_;
  std::vector<SweepFigure> figures_;
};

}  // namespace net
