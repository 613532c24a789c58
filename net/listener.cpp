#include "net/listener.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <exception>
#include <future>
#include <stdexcept>

namespace net {
namespace {

using asio::ip::tcp;

constexpr size_t kRefusedMax =
    64;  // clients being told that there are too many; beyond these the door just closes
constexpr std::chrono::milliseconds kRetryPause{
    100};  // out of descriptors: some connection will end

}  // namespace

Listener::Listener(ServerContext& context, std::vector<std::unique_ptr<IoThread>>& threads)
    : context_(context),
      threads_(threads),
      acceptor_(threads.front()->loop()),
      pause_(threads.front()->loop()) {
  const ServerConfig& config = context.config;
  const std::string address = config.host + ":" + std::to_string(config.port);
  boost::system::error_code error;
  tcp::resolver resolver(threads.front()->loop());
  const auto found =
      resolver.resolve(config.host, std::to_string(config.port), tcp::resolver::passive, error);
  if (error || found.empty())
    throw std::runtime_error("cannot listen on " + address + ": " + error.message());
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) throw std::runtime_error("cannot listen on " + address + ": " + error.message());
  port_ = acceptor_.local_endpoint().port();
}

void Listener::start() {
  asio::co_spawn(threads_.front()->loop(), accept_clients(), asio::detached);
}

void Listener::stop() {
  std::promise<void> closed;
  asio::post(threads_.front()->loop(), [&] {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    closed.set_value();
  });
  closed.get_future().wait();
}

asio::awaitable<void> Listener::accept_clients() {
  const auto self = shared_from_this();
  for (size_t turn = 0; acceptor_.is_open(); ++turn) {
    bool accepted = false;
    try {
      accepted = co_await accept_client(*threads_[turn % threads_.size()]);
    } catch (const std::exception& failure) {  // out of memory: this client is lost, not the next
      std::fprintf(stderr, "http: a client was not accepted: %s\n", failure.what());
    }
    if (accepted || !acceptor_.is_open()) continue;
    boost::system::error_code ignored;
    pause_.expires_after(kRetryPause);
    co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

asio::awaitable<bool> Listener::accept_client(IoThread& thread) {
  tcp::socket socket(thread.loop());
  boost::system::error_code error;
  co_await acceptor_.async_accept(socket, asio::redirect_error(asio::use_awaitable, error));
  if (error || !acceptor_.is_open()) co_return false;
  const size_t open = context_.connections.count();
  const size_t limit = context_.config.limits.connections;
  if (open < limit + kRefusedMax) thread.serve(std::move(socket), open >= limit);
  co_return true;  // beyond those the socket just closes
}

}  // namespace net
