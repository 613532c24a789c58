// The one way in which a whole answer leaves: counted, then written.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "net/client_socket.hpp"
#include "net/response.hpp"
#include "net/server_context.hpp"

namespace net {

// False: the connection must close.
asio::awaitable<bool> send_response(const Response& response, const Reply& reply,
                                    ClientSocket& socket, HttpCounters& counters);

}  // namespace net
