#include "net/server.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "net/admin_socket.hpp"
#include "net/io_thread.hpp"
#include "net/listener.hpp"
#include "net/server_context.hpp"

namespace net {
namespace {

constexpr rlim_t kOtherDescriptors = 256;  // weights, logs, timers, connections being refused
// After the drain: for connections to tell their clients and see that it is over.
constexpr std::chrono::milliseconds kCloseTime{300};

// Debian's soft limit is 1024. What the hard limit forbids shows as a pause in accepting.
void raise_descriptor_limit(size_t connections) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur =
      std::min(limit.rlim_max, std::max(limit.rlim_cur, rlim_t{connections} + kOtherDescriptors));
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

struct Server::Impl {
  Impl(const ServerConfig& config, actors::Service& service) : context(config, service) {
    for (uint32_t i = 0; i < std::max(1u, config.io_threads); ++i) {
      threads.push_back(std::make_unique<IoThread>(context));
    }
    listener = std::make_shared<Listener>(context, threads);  // throws when it cannot bind
    raise_descriptor_limit(config.limits.connections);
    open_admin_socket();
  }

  // One that was named must work; the usual one is a convenience.
  void open_admin_socket() {
    const std::string& wanted = context.config.admin_socket;
    if (wanted == "none") return;
    const bool usual = wanted == "auto";
    try {
      admin = std::make_unique<AdminSocket>(
          usual ? default_admin_path(listener->port()) : wanted, context.service);
    } catch (const std::runtime_error& failure) {
      if (!usual) throw;
      std::fprintf(stderr, "%s; consoles can connect to the HTTP port\n", failure.what());
    }
  }

  ServerContext context;
  std::vector<std::unique_ptr<IoThread>> threads;
  std::shared_ptr<Listener> listener;
  std::unique_ptr<AdminSocket> admin;
  bool running = false, stopped = false;
};

Server::Server(const ServerConfig& config, actors::Service& service)
    : impl_(std::make_unique<Impl>(config, service)) {}

Server::~Server() { stop(std::chrono::milliseconds{0}); }

uint16_t Server::port() const { return impl_->listener->port(); }
std::string Server::admin_path() const { return impl_->admin ? impl_->admin->path() : ""; }

void Server::run_in_background() {
  for (auto& thread : impl_->threads) thread->start();
  impl_->listener->start();
  impl_->running = true;  // only now: stop() waits for the loops of a server that runs
}

void Server::stop(std::chrono::milliseconds drain) {
  if (impl_->stopped) return;
  impl_->stopped = true;
  ServerContext& context = impl_->context;
  context.draining = true;
  impl_->admin.reset();
  const auto drained = std::chrono::steady_clock::now() + drain;
  const auto closed = drained + kCloseTime;
  if (impl_->running) {
    impl_->listener->stop();
    context.requests.wait_for_none(drained);
    for (auto& thread : impl_->threads) thread->stop_connections();
  }
  context.helper.stop();  // calls that wait never begin: their clients are told 503
  if (impl_->running) context.connections.wait_for_none(closed);
  context.helper.join();  // the call under way writes into a connection's frame
  if (impl_->running) context.connections.wait_for_none(closed);  // and may have an answer
  for (auto& thread : impl_->threads) thread->stop();
}

}  // namespace net
