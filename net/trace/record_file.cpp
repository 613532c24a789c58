#include "net/trace/record_file.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace net {

RecordFile::RecordFile(const std::string& path, const std::string& model, const RecordStyle& style)
    : path_(path),
      style_(style),
      began_(std::chrono::steady_clock::now()),
      file_(std::fopen(path.c_str(), "we")) {
  const std::chrono::duration<double> unix_time =
      std::chrono::system_clock::now().time_since_epoch();
  const RecordHeader header{model, style.block_tokens, unix_time.count(), style.hashed};
  if (file_ == nullptr || !write_line(record_line(header)))
    throw std::runtime_error(path + ": cannot be written (" + std::strerror(errno) + ")");
  thread_ = std::thread([this] { run(); });
}

RecordFile::~RecordFile() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

double RecordFile::now_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

void RecordFile::take(FinishedRequest request) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() < kWaitingMax) {
    waiting_.push_back(std::move(request));
    changed_.notify_all();
  } else if (!std::exchange(lost_some_, true)) {
    std::fprintf(stderr, "%s: the disk is too slow; some requests are not recorded\n",
                 path_.c_str());
  }
}

void RecordFile::run() {
  bool written = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    FinishedRequest request = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    if (written && !(written = write_line(record_line(record_of(std::move(request), style_)))))
      std::fprintf(stderr, "%s: cannot be written (%s); no more requests are recorded\n",
                   path_.c_str(), std::strerror(errno));
    lock.lock();
  }
}

// Flushed: a server that is killed leaves whole lines.
bool RecordFile::write_line(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), file_.get());
  std::fputc('\n', file_.get());
  return std::fflush(file_.get()) == 0 && std::ferror(file_.get()) == 0;
}

}  // namespace net
