// A console's end of the line: asks a server over its admin socket or over HTTP, or a saved file.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <string>

#include "kernels/base/result.hpp"

namespace net {

class ConsoleClient {
 public:
  virtual ~ConsoleClient() = default;
  virtual kernels::Result<boost::json::object> ask(const boost::json::object& command) = 0;
  virtual std::string name() const = 0;  // whom it asks
};

struct ConsoleTarget {
  std::string connect;  // PATH or HOST:PORT; empty: the one server of this user that runs
  std::string open;     // a saved file instead
  std::string api_key;  // for HOST:PORT
};

// Throws std::runtime_error: nobody there, and what would be right.
std::unique_ptr<ConsoleClient> connect_console(const ConsoleTarget& target);

}  // namespace net
