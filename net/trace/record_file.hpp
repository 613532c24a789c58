// The file that a server records its requests to. Records are made and written on a thread of its
// own: who hands a request over waits for neither.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "net/trace/finished_request.hpp"

namespace net {

// Invariant: at the destructor's end the file holds every request that was taken, unless writing
// failed; then stderr says so once.
class RecordFile {
 public:
  // Replaces what was there. Throws std::runtime_error naming the path. `model`: for the header.
  RecordFile(const std::string& path, const std::string& model, const RecordStyle& style);
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  double now_s() const;  // since the recording began
  // Any thread. A disk that cannot follow costs records, not memory: stderr says so.
  void take(FinishedRequest request);

 private:
  static constexpr size_t kWaitingMax = 4096;
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void run();
  bool write_line(const std::string& line);

  const std::string path_;
  const RecordStyle style_;
  const std::chrono::steady_clock::time_point began_;
  std::unique_ptr<std::FILE, Close> file_;  // the thread's, once it runs
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<FinishedRequest> waiting_;
  bool ending_ = false, lost_some_ = false;
  std::thread thread_;
};

}  // namespace net
