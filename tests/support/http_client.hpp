// A blocking HTTP/1.1 client for tests: one connection, raw bytes, no library in common with the
// server.
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

namespace support {

struct HttpReply {
  int status = 0;
  std::string head;  // status line and header lines, lower-cased
  std::string body;  // transfer encoding removed
};

class HttpClient {
 public:
  // The time-out only keeps a test from hanging: sanitizers on a busy machine are slow.
  explicit HttpClient(uint16_t port, int timeout_s = 500)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval timeout{timeout_s, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      ::close(socket_);
      throw std::runtime_error("cannot connect to port " + std::to_string(port));
    }
  }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient() { close(); }

  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

  int descriptor() const { return socket_; }

  void send(const std::string& bytes) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t n = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0)
        throw std::runtime_error("the server closed the connection while we were sending");
      sent += static_cast<size_t>(n);
    }
  }

  // Sends a request and reads its whole reply.
  HttpReply request(const std::string& method, const std::string& path,
                    const std::string& body = "", const std::string& extra_headers = "") {
    send(format(method, path, body, extra_headers));
    return read_reply();
  }

  static std::string format(const std::string& method, const std::string& path,
                            const std::string& body, const std::string& extra_headers = "") {
    std::string text = method + " " + path + " HTTP/1.1\r\nHost: test\r\n" + extra_headers;
    if (!body.empty() || method == "POST") {
      text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n";
    }
    return text + "\r\n" + body;
  }

  HttpReply read_reply() {
    HttpReply reply = read_head();
    if (reply.head.find("transfer-encoding: chunked") != std::string::npos) {
      while (read_chunk(reply.body)) {
      }
    } else {
      const auto at = reply.head.find("content-length: ");
      const size_t length =
          at == std::string::npos ? 0 : std::strtoul(reply.head.c_str() + at + 16, nullptr, 10);
      while (buffer_.size() < length) fill();
      reply.body = take(length);
    }
    return reply;
  }

  HttpReply read_head() {
    size_t end;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) fill();
    HttpReply reply;
    reply.head = take(end + 4);
    reply.status = reply.head.size() > 12 ? std::atoi(reply.head.c_str() + 9) : 0;
    std::transform(reply.head.begin(), reply.head.end(), reply.head.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return reply;
  }

  // Appends one chunk of a chunked body; false after the last.
  bool read_chunk(std::string& body) {
    size_t end;
    while ((end = buffer_.find("\r\n")) == std::string::npos) fill();
    const size_t length = std::strtoul(take(end + 2).c_str(), nullptr, 16);
    while (buffer_.size() < length + 2) fill();
    body += take(length);
    take(2);
    return length > 0;
  }

 private:
  void fill() {
    char bytes[16384];
    const ssize_t n = ::recv(socket_, bytes, sizeof bytes, 0);
    if (n <= 0)
      throw std::runtime_error("the server closed the connection or said nothing in time");
    buffer_.append(bytes, static_cast<size_t>(n));
  }
  std::string take(size_t count) {
    std::string head = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return head;
  }

  int socket_;
  std::string buffer_;
};

}  // namespace support
