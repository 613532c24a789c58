// Which sequences of a request are still open, and when its time is up.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/request.hpp"
#include "runtime/step_plan.hpp"

namespace runtime {

// Invariant: a request is in the table while at least one of its sequences has not ended.
class RequestTable {
 public:
  void open(RequestId request, std::vector<SequenceId> sequences,
            uint64_t deadline_us);                     // deadline 0 = none
  bool ended(RequestId request, SequenceId sequence);  // true: it was the last one of its request
  std::vector<SequenceId> sequences_of(RequestId request) const;  // empty for an unknown request
  bool contains(RequestId request) const { return entries_.contains(request.value); }
  std::optional<RequestId> expired(uint64_t now_us) const;  // any one whose deadline has passed
  std::optional<uint64_t> next_deadline_us() const;
  void check(size_t open_sequences) const;

 private:
  struct Entry {
    std::vector<SequenceId> sequences;
    uint64_t deadline_us = 0;
  };
  std::unordered_map<uint64_t, Entry> entries_;        // by RequestId
  std::set<std::pair<uint64_t, uint64_t>> deadlines_;  // {deadline_us, request}
};

}  // namespace runtime
