// What both ends of the admin socket need of the system.
#pragma once

#include <sys/un.h>

#include <optional>
#include <string>
#include <string_view>

namespace net {

std::optional<sockaddr_un> unix_address(const std::string& path);  // none: the path is too long
bool send_all(int fd, std::string_view bytes);                     // false: the peer is gone

}  // namespace net
