// Where a server is reached: the parts of http://HOST[:PORT][/PREFIX].
#pragma once

#include <string>
#include <string_view>

namespace net {

struct ServerAddress {
  std::string host, port = "80";
  std::string prefix;  // of every path: empty, or begins with a slash and does not end with one

  std::string url() const;
  std::string host_field() const;  // as an HTTP request names it
};

// The scheme may be left out, and a prefix /v1, which clients are usually given, is taken too.
// Throws std::invalid_argument saying what would be right.
ServerAddress parse_address(std::string_view url);

}  // namespace net
