// A server on a free port over a fake engine, with time-outs short enough to wait for.
#pragma once

#include <catch2/catch.hpp>

#include "net/server.hpp"
#include "tests/support/fake_service.hpp"
#include "tests/support/wire_client.hpp"

namespace support {

inline net::ServerConfig quick_config() {
  net::ServerConfig config;
  config.port = 0;
  config.limits.linger_timeout = std::chrono::milliseconds(300);
  return config;
}

struct Running {
  explicit Running(const net::ServerConfig& config = quick_config()) : server(config, service) {
    server.run_in_background();
  }
  uint16_t port() const { return server.port(); }

  FakeService service;
  net::Server server;
};

// A completion over token ids: needs no tokenizer.
inline std::string completion(bool stream = false, const std::string& headers = "") {
  const std::string body = stream ? R"({"model":"m","prompt":[1,2,3],"max_tokens":8,"stream":true})"
                                  : R"({"model":"m","prompt":[1,2,3],"max_tokens":8})";
  return post("/v1/completions", body, headers);
}

}  // namespace support
