// Runs a call that may take long on the helper thread while its connection sleeps.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <memory>

#include "net/client_socket.hpp"
#include "net/server_context.hpp"

namespace net {

enum class CallState { kWaiting, kRunning, kDone, kGivenUp };

// Here when it is quick. False: the server stopped before the call began. Invariant: the call runs
// only while this coroutine waits for it, so it may use what the caller's frame holds.
template <class F>
asio::awaitable<bool> run_call(ServerContext& context, ClientSocket& socket, bool slow, F call) {
  if (!slow) {
    call();
    co_return true;
  }
  const auto state = std::make_shared<std::atomic<CallState>>(CallState::kWaiting);
  std::exception_ptr failure;
  asio::post(context.helper, [state, &call, &failure, wake = socket.waker()] {
    auto waiting = CallState::kWaiting;
    if (!state->compare_exchange_strong(waiting, CallState::kRunning)) return;
    try {
      call();
    } catch (...) {
      failure = std::current_exception();
    }
    *state = CallState::kDone;  // from here on `call` and `failure` may be gone
    wake();
  });
  while (*state != CallState::kDone) {
    auto waiting = CallState::kWaiting;
    if (socket.stopped() && state->compare_exchange_strong(waiting, CallState::kGivenUp)) {
      co_return false;
    }
    co_await socket.pause(TimePoint::max());
  }
  if (failure) std::rethrow_exception(failure);
  co_return true;
}

}  // namespace net
