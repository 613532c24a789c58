// Every limit and time-out of the HTTP server, by name, with its default.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace net {

struct HttpLimits {
  size_t body_bytes = size_t{32} << 20;  // a larger body, declared or sent in chunks: 413
  // Request line and header fields, or the trailer fields: 431. One chunk's size line: 400.
  size_t header_bytes = size_t{16} << 10;
  // Read ahead while an answer is being made; then the client waits.
  size_t pipelined_bytes = size_t{64} << 10;
  // New output that waits for one client; more: it reads too slowly, and its request is aborted.
  size_t queue_bytes = size_t{4} << 20;
  size_t connections = 4096;                // more: 503 and close
  size_t offload_bytes = size_t{64} << 10;  // larger bodies are parsed off the io threads
  size_t send_buffer_bytes = 0;  // kernel send buffer of a connection; 0 = the system's choice

  // From a request's first byte to the end of its header, and from there to the end of its body.
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds idle_timeout{120'000};  // between requests, and before the first
  std::chrono::milliseconds write_timeout{30'000};  // one write that the client does not take
  // After an early refusal: time to read it before the close.
  std::chrono::milliseconds linger_timeout{2'000};
  std::chrono::milliseconds retry_after{1'000};  // told to clients with 429 and 503
  std::chrono::milliseconds health_generate_timeout{20'000};
};

struct ServerConfig {
  std::string host = "127.0.0.1";
  uint16_t port = 30000;    // 0: any free one
  uint32_t io_threads = 1;  // each with its own connections
  std::string api_key;      // empty: no key is asked for
  // The console's UNIX socket: a path, "auto" (default_admin_path()) or "none".
  std::string admin_socket = "none";
  HttpLimits limits;
};

}  // namespace net
