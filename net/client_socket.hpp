// One client's TCP socket, read and written with deadlines by one coroutine on one io thread. One
// read may stay pending all the time, so that a client that leaves is noticed while its answer is
// being made; what it sends meanwhile is kept.
//
// The coroutine sleeps in pause() only. Whatever happens (bytes, a write done, tokens, the
// deadline) ends the pause, and the coroutine looks at the state again.
//
// A client may close only its sending side and still wait for its answer: the end of its input
// (EOF) says nothing about the other direction. What it means is the watcher's choice: HalfClose.
// Invariant: at most one read and one write are under way; their buffers live until they completed.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_limits.hpp"

namespace net {

namespace asio = boost::asio;
using TimePoint = std::chrono::steady_clock::time_point;

inline TimePoint after(std::chrono::milliseconds duration) {
  return std::chrono::steady_clock::now() + duration;
}

class ClientSocket : public std::enable_shared_from_this<ClientSocket> {
 public:
  ClientSocket(asio::ip::tcp::socket socket, const HttpLimits& limits);

  // ---- reading: bytes that arrived and were not consumed ----
  std::string_view input() const;
  void consume(size_t bytes);
  // Waits for more input. kClosed: the client will send nothing more.
  enum class ReadStatus { kData, kClosed, kTimeout };
  asio::awaitable<ReadStatus> more(size_t bytes_max, TimePoint deadline);

  // What the end of input means while an answer is being made. A reset always means gone.
  enum class HalfClose {
    kGone,  // the client left: for streams, where nobody stops sending while reading tokens
    kAsk,   // unknown: an interim answer is sent, and a client that closed both ways resets then
    kStay,  // it waits: for HTTP/1.0, which knows no interim answers
  };
  static HalfClose half_close_of_whole(bool http11) {  // for an answer that comes in one piece
    return http11 ? HalfClose::kAsk : HalfClose::kStay;
  }
  // Keeps a read pending until unwatch(); `on_gone`, if any, is called at once when the client is
  // gone.
  void watch(std::function<void()> on_gone, HalfClose half_close);
  void unwatch();
  bool gone() const { return gone_; }

  // ---- writing ----
  // False: the client is gone, or did not take it within the write time-out (the socket is closed
  // then).
  asio::awaitable<bool> write(std::string_view bytes);
  // After an answer to a request that was not read: closes our side and discards what still comes,
  // so that no reset destroys the answer on its way.
  asio::awaitable<void> linger();
  void close();

  // ---- sleeping ----
  asio::awaitable<void> pause(TimePoint deadline);
  void wake() { signal_.cancel(); }
  std::function<void()>
  waker();  // callable on any thread while the io context lives; keeps no socket alive

  // Shutdown: pending writes fail now; a paused coroutine wakes and sees it.
  void stop();
  bool stopped() const { return stopped_; }

 private:
  void start_read(size_t bytes_max);
  void on_read(const boost::system::error_code& error, size_t bytes);
  void on_input_end();  // while watched
  void ask_if_there();
  void leave();

  asio::ip::tcp::socket socket_;
  asio::steady_timer signal_;
  const HttpLimits& limits_;
  std::string input_;
  size_t consumed_ = 0;        // bytes of input_ that are done with
  std::vector<char> scratch_;  // where the pending read writes; small while idle
  std::function<void()> on_gone_;
  bool read_pending_ = false, write_pending_ = false, write_failed_ = false;
  bool watching_ = false, stopped_ = false;
  bool input_ended_ = false;  // nothing more will come
  bool gone_ = false;         // nothing will be read either
  HalfClose half_close_ = HalfClose::kGone;
};

}  // namespace net
