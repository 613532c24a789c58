// What a running server tells of itself before it is played against.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>

#include "net/replay/http_stream.hpp"
#include "net/replay/live_server.hpp"

namespace net {

struct ServerFacts {
  std::string model;        // as it wants to be asked for
  uint32_t vocabulary = 0;  // 0: it does not say
  bool is_sluice = false;
  boost::json::object info;  // of a Sluice server: /get_server_info
};

// Throws std::runtime_error: nobody there, or what it refuses and what would be right.
ServerFacts ask_server(const HttpTarget& target, const LiveServer& server);

}  // namespace net
