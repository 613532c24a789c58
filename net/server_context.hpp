// What all connections of a server share. Outlives every connection and coroutine.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>

#include "actors/service.hpp"
#include "net/activity.hpp"
#include "net/http_limits.hpp"

namespace net {

struct HttpCounters {
  void count(unsigned status) { ++responses[status / 100]; }

  std::atomic<uint64_t> refused_connections{0};      // over the limit
  std::array<std::atomic<uint64_t>, 6> responses{};  // by status / 100
};

struct ServerContext {
  ServerContext(const ServerConfig& settings, actors::Service& engine)
      : config(settings), service(engine) {}

  const ServerConfig config;
  actors::Service& service;
  HttpCounters counters;
  std::atomic<bool> draining{false};      // no new generations; /health says so
  std::atomic<uint64_t> next_request{1};  // numbers the requests that bring no id of their own
  Activity connections;                   // open
  Activity requests;                      // from a complete header to a complete answer
  boost::asio::thread_pool helper{1};  // what would hold up an io thread: tokenizing, large bodies
};

}  // namespace net
