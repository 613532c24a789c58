// Settings of a scenario replaced from outside, before the scenario is read: one rule for a single
// run and for every point of a sweep.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace net {

// `key`: as in the file, with the tables it is in ("server.layout", "pace.concurrency", "seed").
// `value`: TOML, or a text without quotes.
struct Override {
  std::string key, value;
  bool operator==(const Override&) const = default;
};

// "KEY=VALUE". Throws std::invalid_argument.
Override parse_override(std::string_view text);

// The scenario with these settings, as TOML with its keys in order. Whether they exist is found out
// by who reads it. Throws std::runtime_error for what is not TOML and for a key that does not lead
// through tables.
std::string with_overrides(std::string_view toml, const std::string& path,
                           const std::vector<Override>& overrides);

// The scenario of one point: without what it says of sweeps (`grid`, `figure`).
std::string without_sweep(std::string_view toml, const std::string& path);

}  // namespace net
