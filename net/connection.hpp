// One client: requests one after the other until someone closes. Lives on one io thread.
#pragma once

#include <memory>
#include <optional>

#include "net/client_socket.hpp"
#include "net/generation.hpp"
#include "net/request_reader.hpp"
#include "net/router.hpp"
#include "net/server_context.hpp"

namespace net {

class Connection {
 public:
  Connection(asio::ip::tcp::socket socket, ServerContext& context);

  asio::awaitable<void> run();
  asio::awaitable<void> refuse();  // too many connections: says so and closes
  void stop() { socket_->stop(); }

 private:
  asio::awaitable<bool> serve_one();  // false: close
  // What can be said from the header alone; empty: read the body and go on.
  std::optional<Response> answer_from_header(const RequestReader& reader,
                                             const Route*& route) const;
  asio::awaitable<bool> serve_plain(const Route& route, RequestReader& reader, const Reply& reply);
  asio::awaitable<bool> serve_generation(const Route& route, RequestReader& reader, Reply reply);
  asio::awaitable<kernels::Result<ParsedRequest>> parse(const Route& route, RequestReader& reader,
                                                        ArrivalTimes& times);
  asio::awaitable<bool> send(const Response& response, const Reply& reply);
  asio::awaitable<void> send_last(const Response& response,
                                  Reply reply);  // then closes without losing it
  bool is_slow(const Route& route, const std::string& body) const;

  ServerContext& context_;
  const std::shared_ptr<ClientSocket> socket_;
  Activity::Guard open_;
};

}  // namespace net
