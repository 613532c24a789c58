// A client socket for tests of the wire: sends any bytes, reads to any mark, and can leave in every
// way a client leaves.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <string>
#include <string_view>

namespace support {

struct WireReply {
  int status = 0;
  std::string head;  // status line and header lines as sent
  std::string body;  // chunks joined

  // Empty if absent. Names compare without case.
  std::string header(std::string_view name) const {
    const auto lower = [](std::string text) {
      std::transform(text.begin(), text.end(), text.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      return text;
    };
    const size_t at = lower(head).find("\r\n" + lower(std::string(name)) + ": ");
    if (at == std::string::npos) return {};
    const size_t begin = at + 2 + name.size() + 2;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

class WireClient {
 public:
  explicit WireClient(uint16_t port, int receive_buffer_bytes = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval patience{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (receive_buffer_bytes > 0) {
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes,
                   sizeof receive_buffer_bytes);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      ::close(socket_);
      throw std::runtime_error("cannot connect");
    }
  }
  ~WireClient() { close(); }
  WireClient(const WireClient&) = delete;
  WireClient& operator=(const WireClient&) = delete;

  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  void reset() {  // RST instead of FIN
    const linger at_once{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }
  void shut_down_sending() { ::shutdown(socket_, SHUT_WR); }

  // False: the server closed while we were sending.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  std::string read_until(std::string_view mark) {
    size_t at = 0;
    while ((at = input_.find(mark)) == std::string::npos) {
      if (!fill())
        throw std::runtime_error("the server closed before '" + std::string(mark) +
                                 "', after: " + input_);
    }
    return take(at + mark.size());
  }
  std::string read_bytes(size_t count) {
    while (input_.size() < count) {
      if (!fill()) throw std::runtime_error("the server closed too early, after: " + input_);
    }
    return take(count);
  }
  std::string read_to_end() {
    while (fill()) {
    }
    return take(input_.size());
  }
  bool at_end() { return input_.empty() && !fill(); }

  WireReply read_head() {
    WireReply reply;
    reply.head = read_until("\r\n\r\n");
    reply.status = std::stoi(reply.head.substr(9, 3));
    return reply;
  }
  std::string read_chunk() {  // empty: the last
    const std::string size = read_until("\r\n");
    const std::string data = read_bytes(std::stoul(size, nullptr, 16));
    if (read_bytes(2) != "\r\n")
      throw std::runtime_error("a chunk does not end where its size says");
    return data;
  }
  WireReply read_reply(bool head_only = false) {
    WireReply reply = read_head();
    if (head_only || reply.status == 204) return reply;
    if (reply.header("Transfer-Encoding") == "chunked") {
      for (std::string chunk = read_chunk(); !chunk.empty(); chunk = read_chunk())
        reply.body += chunk;
    } else if (!reply.header("Content-Length").empty()) {
      reply.body = read_bytes(std::stoul(reply.header("Content-Length")));
    } else {
      reply.body = read_to_end();
    }
    return reply;
  }
  WireReply ask(std::string_view request) {
    send(request);
    return read_reply();
  }

 private:
  bool fill() {
    char bytes[16384];
    const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      throw std::runtime_error("the server said nothing in time");
    if (got > 0) input_.append(bytes, static_cast<size_t>(got));
    return got > 0;
  }
  std::string take(size_t count) {
    std::string front = input_.substr(0, count);
    input_.erase(0, count);
    return front;
  }

  int socket_;
  std::string input_;
};

inline std::string get(const std::string& path, const std::string& headers = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: test\r\n" + headers + "\r\n";
}

inline std::string post(const std::string& path, const std::string& body,
                        const std::string& headers = "") {
  return "POST " + path +
         " HTTP/1.1\r\nHost: test\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         headers + "\r\n" + body;
}

}  // namespace support
