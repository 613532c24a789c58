// The door of the service: credits, request ids, and whether it is open. The only part of a
// request's path that any thread may call; everything behind it is a mailbox.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/service.hpp"

namespace actors {

// Invariant: the choices of all open requests <= credits. A request is open from admit() to
// release(), which happens once. Thread-safe.
class FrontDesk {
 public:
  explicit FrontDesk(uint64_t credits) : credits_(credits) {}

  void open(ServiceInfo info, std::shared_ptr<const runtime::Tokenizer> tokenizer);
  void close();
  bool fail(const std::string& reason);  // false: it had failed before, and that reason stays
  void wait_ready() const;  // throws std::runtime_error with the reason it never will be
  ServicePhase phase() const;
  bool ready() const;
  ServiceInfo info() const;
  std::shared_ptr<const runtime::Tokenizer> tokenizer() const;

  kernels::Result<runtime::RequestId> admit(const std::string& rid, uint64_t choices);
  void release(runtime::RequestId request);
  // `why` ends the request. False: not open, or cancelled before.
  bool cancel(runtime::RequestId request, kernels::Error why);
  std::optional<kernels::Error> cancelled(runtime::RequestId request) const;  // why, if it is
  bool wanted(runtime::RequestId request) const;                           // open and not cancelled
  std::vector<runtime::RequestId> open_requests() const;                   // ascending
  std::vector<runtime::RequestId> matching(const std::string& rid) const;  // ascending
  std::vector<NamedRequest> named() const;  // the latest requests, open or not, the newest last

  uint32_t open_count() const;
  uint64_t rejected_total() const;
  bool wait_empty(std::chrono::milliseconds timeout) const;

 private:
  using Phase = ServicePhase::Kind;
  struct Entry {
    std::string rid;
    uint64_t choices = 0;  // credits it holds
    std::optional<kernels::Error> cancelled;
  };
  template <class Condition>
  std::vector<runtime::RequestId> ids_where(Condition condition) const;
  struct IdHash {
    size_t operator()(runtime::RequestId id) const { return std::hash<uint64_t>{}(id.value); }
  };

  const uint64_t credits_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  ServicePhase phase_;
  ServiceInfo info_;
  std::shared_ptr<const runtime::Tokenizer> tokenizer_;
  std::unordered_map<runtime::RequestId, Entry, IdHash> open_;
  uint64_t taken_ = 0;  // credits
  uint64_t last_id_ = 0, rejected_total_ = 0;
  std::deque<NamedRequest> named_;
};

}  // namespace actors
