#include "actors/front_desk.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace actors {

using kernels::Error;
using kernels::ErrorCode;
using runtime::RequestId;

void FrontDesk::open(ServiceInfo info, std::shared_ptr<const runtime::Tokenizer> tokenizer) {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::kLoading) return;
  info_ = std::move(info);
  tokenizer_ = std::move(tokenizer);
  phase_ = Phase::kReady;
  changed_.notify_all();
}

void FrontDesk::close() {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::kFailed) phase_ = Phase::kClosed;
  changed_.notify_all();
}

void FrontDesk::fail(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::kFailed) return;
  phase_ = Phase::kFailed;
  failure_ = reason;
  changed_.notify_all();
}

void FrontDesk::wait_ready() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return phase_ != Phase::kLoading; });
  if (phase_ == Phase::kFailed) throw std::runtime_error(failure_);
  if (phase_ == Phase::kClosed)
    throw std::runtime_error("the server was shut down while it was loading");
}

bool FrontDesk::ready() const {
  const std::lock_guard lock(mutex_);
  return phase_ == Phase::kReady;
}

ServiceInfo FrontDesk::info() const {
  const std::lock_guard lock(mutex_);
  return info_;
}

std::shared_ptr<const runtime::Tokenizer> FrontDesk::tokenizer() const {
  const std::lock_guard lock(mutex_);
  return tokenizer_;
}

kernels::Result<RequestId> FrontDesk::admit(const std::string& rid) {
  const std::lock_guard lock(mutex_);
  switch (phase_) {
    case Phase::kLoading:
      return Error{ErrorCode::kUnavailable, "the model is still loading; try again soon", {}};
    case Phase::kClosed:
      return Error{ErrorCode::kUnavailable, "the server is shutting down", {}};
    case Phase::kFailed:
      return Error{ErrorCode::kUnavailable, "the engine has failed: " + failure_, {}};
    case Phase::kReady:
      break;
  }
  if (open_.size() >= credits_) {
    ++rejected_total_;
    return Error{ErrorCode::kFull,
                 "the server is full: " + std::to_string(credits_) +
                     " requests are running or queued; try again later",
                 {}};
  }
  const RequestId id{++last_id_};
  open_.emplace(id, Entry{rid, false});
  return id;
}

void FrontDesk::release(RequestId request) {
  const std::lock_guard lock(mutex_);
  if (open_.erase(request) > 0) changed_.notify_all();
}

bool FrontDesk::cancel(RequestId request) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(request);
  if (found == open_.end()) return false;
  found->second.cancelled = true;
  return true;
}

bool FrontDesk::cancelled(RequestId request) const {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(request);
  return found != open_.end() && found->second.cancelled;
}

std::vector<RequestId> FrontDesk::matching(const std::string& rid) const {
  std::vector<RequestId> found;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : open_) {
    if (rid.empty() || entry.rid == rid) found.push_back(id);
  }
  std::sort(found.begin(), found.end());
  return found;
}

uint32_t FrontDesk::open_count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint32_t>(open_.size());
}

uint64_t FrontDesk::rejected_total() const {
  const std::lock_guard lock(mutex_);
  return rejected_total_;
}

bool FrontDesk::wait_empty(std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [this] { return open_.empty(); });
}

}  // namespace actors
