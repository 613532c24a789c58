#include "net/client_socket.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace net {
namespace {

constexpr size_t kIdleReadBytes =
    4096;  // most requests in one read; 2,000 idle connections hold 8 MiB
constexpr size_t kDiscardBytes = size_t{64} << 10;
constexpr std::string_view kInterimAnswer = "HTTP/1.1 102 Processing\r\n\r\n";
constexpr auto kForever = TimePoint::max();

using Clock = std::chrono::steady_clock;

}  // namespace

ClientSocket::ClientSocket(asio::ip::tcp::socket socket, const HttpLimits& limits)
    : socket_(std::move(socket)), signal_(socket_.get_executor()), limits_(limits) {
  boost::system::error_code ignored;  // a socket that died meanwhile shows it at the first read
  socket_.non_blocking(true, ignored);
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  if (limits.send_buffer_bytes != 0) {
    const auto bytes = static_cast<int>(limits.send_buffer_bytes);
    socket_.set_option(asio::socket_base::send_buffer_size(bytes), ignored);
  }
}

std::string_view ClientSocket::input() const { return std::string_view(input_).substr(consumed_); }

void ClientSocket::consume(size_t bytes) {
  consumed_ += bytes;
  if (consumed_ < input_.size()) return;
  consumed_ = 0;
  if (input_.capacity() > kIdleReadBytes) {
    input_ = {};  // an idle connection holds no large buffer
  } else {
    input_.clear();
  }
}

asio::awaitable<ClientSocket::ReadStatus> ClientSocket::more(size_t bytes_max, TimePoint deadline) {
  if (input_ended_) co_return ReadStatus::kClosed;
  const size_t had = input().size();
  if (!read_pending_) start_read(bytes_max);
  while (read_pending_) {
    if (stopped_) co_return ReadStatus::kClosed;
    if (Clock::now() >= deadline) co_return ReadStatus::kTimeout;
    co_await pause(deadline);
  }
  co_return input().size() > had ? ReadStatus::kData : ReadStatus::kClosed;
}

void ClientSocket::watch(std::function<void()> on_gone, HalfClose half_close) {
  on_gone_ = std::move(on_gone);
  watching_ = true;
  half_close_ = half_close;
  if (input_ended_) {
    on_input_end();
  } else if (!read_pending_) {
    start_read(kIdleReadBytes);
  }
}

void ClientSocket::unwatch() {
  watching_ = false;
  on_gone_ = nullptr;
}

void ClientSocket::start_read(size_t bytes_max) {
  // A client that always has the next request under way never lets input() run empty.
  input_.erase(0, consumed_);
  consumed_ = 0;
  const size_t bytes = std::max(bytes_max, kIdleReadBytes);
  if (scratch_.size() != bytes) scratch_ = std::vector<char>(bytes);
  read_pending_ = true;
  socket_.async_read_some(asio::buffer(scratch_),
                          [self = shared_from_this()](const boost::system::error_code& error,
                                                      size_t read) { self->on_read(error, read); });
}

void ClientSocket::on_read(const boost::system::error_code& error, size_t bytes) {
  read_pending_ = false;
  if (error) {
    input_ended_ = true;
    if (error != asio::error::eof) leave();
    if (watching_) on_input_end();
  } else {
    input_.append(scratch_.data(), bytes);
    // Past the limit the client waits in its send buffer; only a write will then show that it left.
    if (watching_ && input().size() < limits_.pipelined_bytes) start_read(kIdleReadBytes);
  }
  wake();
}

void ClientSocket::on_input_end() {
  if (gone_) return;
  if (half_close_ == HalfClose::kGone) leave();
  if (half_close_ == HalfClose::kAsk) ask_if_there();
}

// To a closed socket the bytes come as a surprise: its reset reaches us as an error condition.
void ClientSocket::ask_if_there() {
  socket_.async_wait(asio::socket_base::wait_error,
                     [self = shared_from_this()](const boost::system::error_code& cancelled) {
                       if (!cancelled) self->leave();
                     });
  boost::system::error_code error;
  socket_.write_some(asio::buffer(kInterimAnswer), error);
  if (error && error != asio::error::would_block) leave();
}

void ClientSocket::leave() {
  if (gone_) return;
  gone_ = true;
  if (on_gone_) on_gone_();
  wake();
}

asio::awaitable<bool> ClientSocket::write(std::string_view bytes) {
  boost::system::error_code error;
  const size_t sent = socket_.write_some(asio::buffer(bytes),
                                         error);  // nearly always takes all: no coroutine switch
  if (!error && sent == bytes.size()) co_return true;
  if (error && error != asio::error::would_block) co_return false;

  const auto rest = asio::buffer(bytes) + (error ? 0 : sent);
  write_pending_ = true;
  asio::async_write(socket_, rest,
                    [self = shared_from_this()](const boost::system::error_code& failure, size_t) {
                      self->write_pending_ = false;
                      self->write_failed_ = static_cast<bool>(failure);
                      self->wake();
                    });
  TimePoint deadline = after(limits_.write_timeout);
  while (write_pending_) {
    if ((watching_ && gone_) || stopped_ || Clock::now() >= deadline) {
      close();  // the write now completes with an error; its buffer must live until then
      deadline = kForever;
    }
    if (write_pending_) co_await pause(socket_.is_open() ? deadline : kForever);
  }
  co_return !write_failed_;
}

asio::awaitable<void> ClientSocket::linger() {
  boost::system::error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  const TimePoint deadline = after(limits_.linger_timeout);
  ReadStatus status = ReadStatus::kData;
  while (status == ReadStatus::kData) {
    consume(input().size());
    status = co_await more(kDiscardBytes, deadline);
  }
}

void ClientSocket::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

asio::awaitable<void> ClientSocket::pause(TimePoint deadline) {
  boost::system::error_code ignored;  // cancelled = woken
  signal_.expires_at(deadline);
  co_await signal_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

std::function<void()> ClientSocket::waker() {
  return [executor = socket_.get_executor(), weak = weak_from_this()] {
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) self->wake();
    });
  };
}

void ClientSocket::stop() {
  stopped_ = true;
  wake();
}

}  // namespace net
