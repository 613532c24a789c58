#include "net/send_response.hpp"

namespace net {

asio::awaitable<bool> send_response(const Response& response, const Reply& reply,
                                    ClientSocket& socket, HttpCounters& counters) {
  counters.count(response.status);
  const std::string wire = to_wire(response, reply);
  const bool written = co_await socket.write(wire);
  co_return written&& reply.keep_alive;
}

}  // namespace net
