#include "runtime/request_queue.hpp"

#include "kernels/base/verify.hpp"

namespace runtime {

void RequestQueue::push(Sequence& sequence) {
  VERIFY(sequence.phase == Sequence::Phase::kQueued);
  VERIFY(waiting_.insert(&sequence).second);
}

void RequestQueue::erase(Sequence& sequence) { VERIFY(waiting_.erase(&sequence) == 1); }

Sequence& RequestQueue::front() const {
  VERIFY(!waiting_.empty());
  return **waiting_.begin();
}

void RequestQueue::check() const {
  for (const Sequence* sequence : waiting_) VERIFY(sequence->phase == Sequence::Phase::kQueued);
}

}  // namespace runtime
