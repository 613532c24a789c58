#include "net/console_client.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "net/admin_socket.hpp"
#include "net/console_answer.hpp"
#include "net/unix_socket.hpp"

namespace net {
namespace {

namespace fs = std::filesystem;
namespace http = boost::beast::http;
namespace json = boost::json;
using Answer = kernels::Result<json::object>;

kernels::Error lost(const std::string& whom, const std::string& why) {
  return {kernels::ErrorCode::kUnavailable, whom + ": " + why, {}};
}

// What a reply of the line protocol says.
Answer read_reply(const std::string& whom, const std::string& text) {
  json::error_code code;
  json::value reply = json::parse(text, code);
  const json::object* const object = code ? nullptr : reply.if_object();
  if (object == nullptr) return lost(whom, "answered something else than a console is told");
  const json::value* const error = object->if_contains("error");
  if (error == nullptr) {
    const json::value* const result = object->if_contains("result");
    if (result == nullptr || !result->is_object()) return lost(whom, "answered without a result");
    return result->get_object();
  }
  const json::value* const message =
      error->is_object() ? error->get_object().if_contains("message") : nullptr;
  return kernels::invalid(message != nullptr && message->is_string()
                              ? std::string(message->get_string().c_str())
                              : json::serialize(*error));
}

class SocketClient final : public ConsoleClient {
 public:
  explicit SocketClient(std::string path) : path_(std::move(path)) {
    const auto address = unix_address(path_);
    if (!address) throw std::runtime_error(path_ + " is too long for a socket's path");
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
      const std::string why = std::strerror(errno);
      ::close(fd_);
      throw std::runtime_error("no server answers at " + path_ + ": " + why);
    }
  }
  ~SocketClient() override { ::close(fd_); }
  std::string name() const override { return path_; }

  Answer ask(const json::object& command) override {
    if (!send_all(fd_, json::serialize(command) + "\n"))
      return lost(path_, "the server is gone");
    std::string reply;
    for (char bytes[65536]; reply.empty() || reply.back() != '\n';) {
      const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return lost(path_, "the server is gone");
      reply.append(bytes, static_cast<size_t>(got));
    }
    return read_reply(path_, reply);
  }

 private:
  std::string path_;
  int fd_ = -1;
};

class HttpClient final : public ConsoleClient {
 public:
  HttpClient(std::string host, std::string port, std::string key)
      : host_(std::move(host)), port_(std::move(port)), key_(std::move(key)) {
    (void)connect();  // throws when nobody is there
  }
  std::string name() const override { return host_ + ":" + port_; }

  Answer ask(const json::object& command) override {
    try {
      boost::beast::tcp_stream stream = connect();
      http::request<http::string_body> request{http::verb::post, "/admin", 11};
      request.set(http::field::host, host_);
      request.set(http::field::content_type, "application/json");
      request.set(http::field::connection, "close");
      if (!key_.empty()) request.set(http::field::authorization, "Bearer " + key_);
      request.body() = json::serialize(command);
      request.prepare_payload();
      http::write(stream, request);
      boost::beast::flat_buffer buffer;
      http::response_parser<http::string_body> reply;
      reply.body_limit(uint64_t{1} << 32);
      http::read(stream, buffer, reply);
      return read_reply(name(), reply.get().body());
    } catch (const std::exception& failure) {
      return lost(name(), failure.what());
    }
  }

 private:
  boost::beast::tcp_stream connect() {
    boost::asio::ip::tcp::resolver resolver(context_);
    boost::beast::tcp_stream stream(context_);
    try {
      stream.connect(resolver.resolve(host_, port_));
    } catch (const std::exception& failure) {
      throw std::runtime_error("no server answers at " + name() + ": " + failure.what());
    }
    return stream;
  }
  boost::asio::io_context context_;
  std::string host_, port_, key_;
};

class FileClient final : public ConsoleClient {
 public:
  FileClient(std::string path, std::unique_ptr<ConsoleSource> source)
      : path_(std::move(path)), source_(std::move(source)) {}
  std::string name() const override { return path_; }
  Answer ask(const json::object& command) override { return console_answer(command, *source_); }

 private:
  std::string path_;
  std::unique_ptr<ConsoleSource> source_;
};

// The default port's socket, or the only one there is.
std::string find_socket() {
  const std::string usual = default_admin_path(30000);
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(admin_directory(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("sluice-", 0) == 0 && entry.path().extension() == ".sock")
      found.push_back(entry.path().string());
  }
  if (fs::exists(usual, ignored)) return usual;
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    throw std::runtime_error("no server of this user runs (" + admin_directory() +
                             "/sluice-*.sock); name one with --connect PATH or HOST:PORT");
  }
  std::string message = "several servers run; choose one with --connect:";
  for (const std::string& path : found) message += "\n  " + path;
  throw std::runtime_error(message);
}

}  // namespace

std::unique_ptr<ConsoleClient> connect_console(const ConsoleTarget& target) {
  if (!target.open.empty()) {
    auto source = open_saved_source(target.open);
    if (!source) throw std::runtime_error(source.error().message);
    return std::make_unique<FileClient>(target.open, std::move(*source));
  }
  const std::string where = target.connect.empty() ? find_socket() : target.connect;
  const size_t colon = where.rfind(':');
  if (where.find('/') != std::string::npos || colon == std::string::npos)
    return std::make_unique<SocketClient>(where);
  return std::make_unique<HttpClient>(where.substr(0, colon), where.substr(colon + 1),
                                      target.api_key);
}

}  // namespace net
