// The console's line protocol: a JSON object a line, {"cmd": ...}, is answered by one line,
// {"ok": true, "result": ...} or {"ok": false, "error": {"message", "param"}}.
#pragma once

#include <string>
#include <string_view>

#include "net/console_source.hpp"

namespace net {

inline constexpr size_t kAdminLineMax = size_t{64} << 10;  // bytes of a command

struct AdminReply {
  std::string line;  // without its end
  unsigned status = 200;  // the same over HTTP
};
AdminReply answer_admin_line(std::string_view line, ConsoleSource& source);
AdminReply admin_error(const kernels::Error& error);

}  // namespace net
