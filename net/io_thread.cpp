#include "net/io_thread.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <exception>

namespace net {

void IoThread::start() {
  thread_ = std::thread([this] {
    for (;;) {
      try {
        loop_.run();
        return;
      } catch (const std::exception& failure) {  // out of memory in a handler: the loop goes on
        std::fprintf(stderr, "http: %s\n", failure.what());
      }
    }
  });
}

void IoThread::stop() {
  work_.reset();
  loop_.stop();
  if (thread_.joinable()) thread_.join();
}

void IoThread::stop_connections() {
  asio::post(loop_, [this] {
    stopping_ = true;
    for (Connection* connection : connections_) connection->stop();
  });
}

void IoThread::serve(asio::ip::tcp::socket socket, bool refuse) {
  auto connection = std::make_shared<Connection>(std::move(socket), context_);
  asio::post(loop_, [this, refuse, connection = std::move(connection)] {
    connections_.insert(connection.get());
    if (stopping_) connection->stop();
    // The completion handler keeps the connection alive while its coroutine runs.
    auto work = refuse ? connection->refuse() : connection->run();
    asio::co_spawn(loop_, std::move(work), [this, connection](std::exception_ptr failure) {
      connections_.erase(connection.get());
      if (!failure) return;
      try {
        std::rethrow_exception(failure);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "http: a connection ended: %s\n", error.what());
      }
    });
  });
}

}  // namespace net
