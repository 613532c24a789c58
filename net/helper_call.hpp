// Runs a call that may take long on the helper thread while its connection sleeps.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <memory>

#include "net/client_socket.hpp"
#include "net/server_context.hpp"
#include "runtime/tokenizer.hpp"

namespace net {

enum class CallState { kWaiting, kRunning, kDone, kGivenUp };

// Here when it is quick. The call is given a KeepGoing that says no once the server stops or the
// client is gone (while the socket is watched). False: the call did not begin, or was told so and
// has no result. Invariant: the call runs only while this coroutine waits for it, so it may use
// what the caller's frame holds.
template <class F>
asio::awaitable<bool> run_call(ServerContext& context, ClientSocket& socket, bool slow, F call) {
  if (!slow) {
    call(runtime::KeepGoing());
    co_return true;
  }
  const auto state = std::make_shared<std::atomic<CallState>>(CallState::kWaiting);
  std::atomic<bool> wanted{true};
  bool cut_short = false;
  std::exception_ptr failure;
  asio::post(context.helper, [&, state, wake = socket.waker()] {
    auto waiting = CallState::kWaiting;
    if (!state->compare_exchange_strong(waiting, CallState::kRunning)) return;
    try {
      call(runtime::KeepGoing([&] {
        if (!wanted) cut_short = true;
        return !cut_short;
      }));
    } catch (...) {
      failure = std::current_exception();
    }
    *state = CallState::kDone;  // from here on nothing of the frame may be there
    wake();
  });
  while (*state != CallState::kDone) {
    auto waiting = CallState::kWaiting;
    const bool over = socket.stopped() || socket.gone();
    if (over && state->compare_exchange_strong(waiting, CallState::kGivenUp)) co_return false;
    if (over) wanted = false;
    co_await socket.pause(TimePoint::max());
  }
  if (failure) std::rethrow_exception(failure);
  co_return !cut_short;
}

}  // namespace net
