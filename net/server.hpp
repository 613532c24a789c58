// The HTTP server: listens, owns the io threads, and shuts down in order. All types of Asio stay
// behind it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "actors/service.hpp"
#include "net/http_limits.hpp"

namespace net {

class Server {
 public:
  // Binds at once; throws std::runtime_error naming host:port when it cannot. `service` must
  // outlive the server.
  Server(const ServerConfig& config, actors::Service& service);
  ~Server();  // stop() without patience

  uint16_t port() const;
  std::string admin_path() const;  // of the console's socket; empty: there is none
  void run_in_background();
  // Takes no more connections and no more generations, lets running answers end for up to `drain`,
  // then aborts them (their clients get an error) and closes: within half a second, unless one call
  // that cannot be cut short (the tokenizer on a huge text) is under way. Once.
  void stop(std::chrono::milliseconds drain);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace net
