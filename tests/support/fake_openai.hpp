// A server for tests of clients: every connection brings one request, and a script of the test
// answers it byte by byte as it likes, on a thread of its own.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace support {

struct FakeRequest {
  std::string head;  // request line and header fields, as sent
  std::string path, body;
  uint32_t index = 0;  // among those to the same path
  std::chrono::steady_clock::time_point arrival;
};

// One connection, for a script.
class FakeExchange {
 public:
  FakeExchange(int socket, FakeRequest request) : socket_(socket), request_(std::move(request)) {}
  const FakeRequest& request() const { return request_; }

  // False: the client is gone.
  bool send(const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t n = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<size_t>(n);
    }
    return true;
  }
  // An answer that is sent at once.
  bool reply(int status, const std::string& body, const std::string& fields = "") {
    return send("HTTP/1.1 " + std::to_string(status) + " X\r\n" + fields +
                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  bool begin_stream() {
    return send(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
  }
  static std::string chunk(const std::string& bytes) {
    char size[32];
    std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    return size + bytes + "\r\n";
  }
  bool event(const std::string& data) { return send(chunk("data: " + data + "\n\n")); }
  bool end_stream() { return send("0\r\n\r\n"); }
  // Waits until the client has closed; true if it did so without a further byte.
  bool client_left() {
    char byte;
    return ::recv(socket_, &byte, 1, 0) <= 0;
  }

 private:
  int socket_;
  FakeRequest request_;
};

class FakeOpenAi {
 public:
  using Script = std::function<void(FakeExchange&)>;

  explicit FakeOpenAi(Script script)
      : script_(std::move(script)), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_, 1024) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("cannot listen");
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~FakeOpenAi() {
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (std::thread& thread : connections_) thread.join();
    ::close(listener_);
  }
  FakeOpenAi(const FakeOpenAi&) = delete;
  FakeOpenAi& operator=(const FakeOpenAi&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // What was asked so far, in order of arrival; with a path: of that path alone.
  std::vector<FakeRequest> requests(const std::string& path = "") const {
    std::lock_guard lock(mutex_);
    std::vector<FakeRequest> found;
    for (const FakeRequest& request : requests_)
      if (path.empty() || request.path == path) found.push_back(request);
    return found;
  }

 private:
  void accept_all() {
    for (int socket; (socket = ::accept(listener_, nullptr, nullptr)) >= 0;) {
      connections_.emplace_back([this, socket] {
        serve(socket);
        ::close(socket);
      });
    }
  }

  void serve(int socket) {
    std::string bytes;
    size_t head = 0, length = 0;
    while ((head = bytes.find("\r\n\r\n")) == bytes.npos || bytes.size() < head + 4 + length) {
      char buffer[65536];
      const ssize_t n = ::recv(socket, buffer, sizeof buffer, 0);
      if (n <= 0) return;
      bytes.append(buffer, static_cast<size_t>(n));
      const size_t field = bytes.find("Content-Length: ");
      if (field != bytes.npos) length = std::strtoul(bytes.c_str() + field + 16, nullptr, 10);
    }
    FakeRequest request;
    request.arrival = std::chrono::steady_clock::now();
    request.head = bytes.substr(0, head);
    request.body = bytes.substr(head + 4);
    const size_t path = bytes.find(' ') + 1;
    request.path = bytes.substr(path, bytes.find(' ', path) - path);
    {
      std::lock_guard lock(mutex_);
      request.index = static_cast<uint32_t>(
          std::count_if(requests_.begin(), requests_.end(),
                        [&](const FakeRequest& other) { return other.path == request.path; }));
      requests_.push_back(request);
    }
    FakeExchange exchange(socket, std::move(request));
    script_(exchange);
  }

  Script script_;
  int listener_;
  uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::vector<FakeRequest> requests_;
  std::list<std::thread> connections_;
  std::thread acceptor_;  // last: it begins when all else is there
};

}  // namespace support
