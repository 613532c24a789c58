// A thread with its own event loop and the connections that live on it. A connection never changes
// threads, so nothing of it needs a lock.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <thread>
#include <unordered_set>

#include "net/connection.hpp"
#include "net/server_context.hpp"

namespace net {

class IoThread {
 public:
  explicit IoThread(ServerContext& context) : context_(context) {}
  ~IoThread() { stop(); }

  void start();
  void stop();              // ends the loop; what connections are left die with it
  void stop_connections();  // any thread: every connection, and any still to come, ends soon

  asio::io_context& loop() { return loop_; }
  // Any thread. `refuse`: there are too many already.
  void serve(asio::ip::tcp::socket socket, bool refuse);

 private:
  ServerContext& context_;
  asio::io_context loop_{1};  // run by one thread
  asio::executor_work_guard<asio::io_context::executor_type> work_{loop_.get_executor()};
  std::unordered_set<Connection*> connections_;  // touched on the loop's thread only
  bool stopping_ = false;                        // likewise
  std::thread thread_;
};

}  // namespace net
