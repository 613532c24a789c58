// Accepts clients and deals them out to the io threads in turn.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <vector>

#include "net/io_thread.hpp"

namespace net {

class Listener : public std::enable_shared_from_this<Listener> {
 public:
  // Binds and listens. Throws std::runtime_error naming host:port. Uses the first thread's loop.
  Listener(ServerContext& context, std::vector<std::unique_ptr<IoThread>>& threads);

  uint16_t port() const { return port_; }
  void start();
  void stop();  // any thread but the loop's, which must run; afterwards connecting fails

 private:
  asio::awaitable<void> accept_clients();
  asio::awaitable<bool> accept_client(IoThread& thread);  // false: pause before the next

  ServerContext& context_;
  std::vector<std::unique_ptr<IoThread>>& threads_;
  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  uint16_t port_ = 0;
};

}  // namespace net
