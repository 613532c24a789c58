// The door of the service: credits, request ids, and whether it is open. The only part of a
// request's path that any thread may call; everything behind it is a mailbox.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/service.hpp"

namespace actors {

// Invariant: open requests <= credits. A request is open from admit() to release(), which happens
// once. Thread-safe.
class FrontDesk {
 public:
  explicit FrontDesk(uint32_t credits) : credits_(credits) {}

  // Life of the service: loading -> ready -> closed, or failed from any of them.
  void open(ServiceInfo info, std::shared_ptr<const runtime::Tokenizer> tokenizer);
  void close();
  void fail(const std::string& reason);  // the first reason stays
  void wait_ready() const;  // throws std::runtime_error with the reason it never will be
  bool ready() const;
  ServiceInfo info() const;
  std::shared_ptr<const runtime::Tokenizer> tokenizer() const;

  kernels::Result<runtime::RequestId> admit(const std::string& rid);
  void release(runtime::RequestId request);
  bool cancel(runtime::RequestId request);  // false: not open
  bool cancelled(runtime::RequestId request) const;
  std::vector<runtime::RequestId> matching(const std::string& rid) const;  // "" = all

  uint32_t open_count() const;
  uint64_t rejected_total() const;
  bool wait_empty(std::chrono::milliseconds timeout) const;

 private:
  enum class Phase { kLoading, kReady, kClosed, kFailed };
  struct Entry {
    std::string rid;
    bool cancelled = false;
  };
  struct IdHash {
    size_t operator()(runtime::RequestId id) const { return std::hash<uint64_t>{}(id.value); }
  };

  const uint32_t credits_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Phase phase_ = Phase::kLoading;
  std::string failure_;
  ServiceInfo info_;
  std::shared_ptr<const runtime::Tokenizer> tokenizer_;
  std::unordered_map<runtime::RequestId, Entry, IdHash> open_;
  uint64_t last_id_ = 0, rejected_total_ = 0;
};

}  // namespace actors
