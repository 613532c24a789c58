// Sequences that wait for admission. The order is that of goes_before(); a retracted sequence keeps
// its arrival and so returns to the front of its priority.
#pragma once

#include <cstddef>
#include <set>

#include "runtime/sequence.hpp"

namespace runtime {

// Holds no ownership. Invariant: every sequence in it has phase kQueued.
class RequestQueue {
 public:
  void push(Sequence& sequence);
  void erase(Sequence& sequence);
  Sequence& front() const;
  bool empty() const { return waiting_.empty(); }
  size_t size() const { return waiting_.size(); }
  void check() const;

 private:
  struct Before {
    bool operator()(const Sequence* a, const Sequence* b) const { return goes_before(*a, *b); }
  };
  std::set<Sequence*, Before> waiting_;
};

}  // namespace runtime
