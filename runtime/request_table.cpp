#include "runtime/request_table.hpp"

#include "kernels/base/verify.hpp"

namespace runtime {

void RequestTable::open(RequestId request, std::vector<SequenceId> sequences,
                        uint64_t deadline_us) {
  VERIFY(!sequences.empty());
  const bool is_new =
      entries_.try_emplace(request.value, Entry{std::move(sequences), deadline_us}).second;
  VERIFY(is_new);
  if (deadline_us != 0) deadlines_.insert({deadline_us, request.value});
}

bool RequestTable::ended(RequestId request, SequenceId sequence) {
  const auto found = entries_.find(request.value);
  VERIFY(found != entries_.end());
  VERIFY(std::erase(found->second.sequences, sequence) == 1);
  if (!found->second.sequences.empty()) return false;
  if (found->second.deadline_us != 0) deadlines_.erase({found->second.deadline_us, request.value});
  entries_.erase(found);
  return true;
}

std::vector<SequenceId> RequestTable::sequences_of(RequestId request) const {
  const auto found = entries_.find(request.value);
  return found == entries_.end() ? std::vector<SequenceId>{} : found->second.sequences;
}

std::optional<RequestId> RequestTable::expired(uint64_t now_us) const {
  if (deadlines_.empty() || deadlines_.begin()->first > now_us) return std::nullopt;
  return RequestId{deadlines_.begin()->second};
}

std::optional<uint64_t> RequestTable::next_deadline_us() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

void RequestTable::check(size_t open_sequences) const {
  size_t open = 0, timed = 0;
  for (const auto& [id, entry] : entries_) {
    VERIFY(!entry.sequences.empty());
    open += entry.sequences.size();
    if (entry.deadline_us != 0) ++timed;
  }
  VERIFY(open == open_sequences);
  VERIFY(timed == deadlines_.size());
}

}  // namespace runtime
