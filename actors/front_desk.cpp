#include "actors/front_desk.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/endings.hpp"

namespace actors {

using kernels::Error;
using kernels::ErrorCode;
using runtime::RequestId;

namespace {
constexpr size_t kNamedMax = 4096;  // requests that a console can ask about by name
}

void FrontDesk::open(ServiceInfo info, std::shared_ptr<const runtime::Tokenizer> tokenizer) {
  const std::lock_guard lock(mutex_);
  if (phase_.kind != Phase::kStarting) return;
  info_ = std::move(info);
  tokenizer_ = std::move(tokenizer);
  phase_.kind = Phase::kReady;
  changed_.notify_all();
}

void FrontDesk::close() {
  const std::lock_guard lock(mutex_);
  if (phase_.kind != Phase::kFailed) phase_.kind = Phase::kDraining;
  changed_.notify_all();
}

bool FrontDesk::fail(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (phase_.kind == Phase::kFailed) return false;
  phase_ = {Phase::kFailed, reason};
  changed_.notify_all();
  return true;
}

void FrontDesk::wait_ready() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return phase_.kind != Phase::kStarting; });
  if (phase_.kind == Phase::kFailed) throw std::runtime_error(phase_.reason);
  if (phase_.kind == Phase::kDraining)
    throw std::runtime_error("the server was shut down while it was loading");
}

ServicePhase FrontDesk::phase() const {
  const std::lock_guard lock(mutex_);
  return phase_;
}

bool FrontDesk::ready() const {
  const std::lock_guard lock(mutex_);
  return phase_.kind == Phase::kReady;
}

ServiceInfo FrontDesk::info() const {
  const std::lock_guard lock(mutex_);
  return info_;
}

std::shared_ptr<const runtime::Tokenizer> FrontDesk::tokenizer() const {
  const std::lock_guard lock(mutex_);
  return tokenizer_;
}

kernels::Result<RequestId> FrontDesk::admit(const std::string& rid, uint64_t choices) {
  const std::lock_guard lock(mutex_);
  switch (phase_.kind) {
    case Phase::kStarting:
      return Error{ErrorCode::kUnavailable, "the model is still loading; try again soon", {}};
    case Phase::kDraining:
      return runtime::shutting_down();
    case Phase::kFailed:
      return Error{ErrorCode::kUnavailable, "the engine has failed: " + phase_.reason, {}};
    case Phase::kReady:
      break;
  }
  if (const uint64_t most = std::min<uint64_t>(credits_, kChoicesMax); choices > most) {
    const char* const limit =
        most == credits_ ? "max_running_requests + max_queue" : "one request's limit";
    return kernels::invalid("n: the request has " + std::to_string(choices) +
                                " choices (prompts times n), this server holds at most " +
                                std::to_string(most) + " (" + limit + ")",
                            "n");
  }
  if (choices > credits_ - taken_) {
    ++rejected_total_;
    return Error{ErrorCode::kFull,
                 "the server is full: " + std::to_string(taken_) + " of " +
                     std::to_string(credits_) + " choices are running or queued, " +
                     std::to_string(choices) + " more do not fit; try again later",
                 {}};
  }
  taken_ += choices;
  const RequestId id{++last_id_};
  open_.emplace(id, Entry{rid, choices, std::nullopt});
  named_.push_back({rid, id});
  if (named_.size() > kNamedMax) named_.pop_front();
  return id;
}

void FrontDesk::release(RequestId request) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(request);
  if (found == open_.end()) return;
  taken_ -= found->second.choices;
  open_.erase(found);
  changed_.notify_all();
}

bool FrontDesk::cancel(RequestId request, Error why) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(request);
  if (found == open_.end() || found->second.cancelled) return false;
  found->second.cancelled = std::move(why);
  return true;
}

std::optional<Error> FrontDesk::cancelled(RequestId request) const {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(request);
  return found == open_.end() ? std::nullopt : found->second.cancelled;
}

bool FrontDesk::wanted(RequestId request) const {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(request);
  return found != open_.end() && !found->second.cancelled;
}

template <class Condition>
std::vector<RequestId> FrontDesk::ids_where(Condition condition) const {
  std::vector<RequestId> found;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, entry] : open_) {
    if (condition(entry)) found.push_back(id);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<RequestId> FrontDesk::open_requests() const {
  return ids_where([](const Entry&) { return true; });
}

std::vector<RequestId> FrontDesk::matching(const std::string& rid) const {
  return ids_where([&](const Entry& entry) { return entry.rid == rid; });
}

std::vector<NamedRequest> FrontDesk::named() const {
  const std::lock_guard lock(mutex_);
  return {named_.begin(), named_.end()};
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
