#include "memory/cache_ledger.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/verify.hpp"

namespace memory {

uint32_t Admission::own_pages() const {
  return static_cast<uint32_t>(std::count(borrowed.begin(), borrowed.end(), false));
}

void CacheLedger::open(uint64_t ticket, Admission admission) {
  VERIFY(ticket != 0);
  VERIFY(admissions_.emplace(ticket, std::move(admission)).second);
}

Admission* CacheLedger::find(uint64_t ticket) {
  const auto found = admissions_.find(ticket);
  return found == admissions_.end() ? nullptr : &found->second;
}

Admission& CacheLedger::at(uint64_t ticket) {
  Admission* const found = find(ticket);
  VERIFY(found != nullptr);
  return *found;
}

Admission CacheLedger::close(uint64_t ticket) {
  const auto found = admissions_.find(ticket);
  VERIFY(found != admissions_.end());
  Admission closed = std::move(found->second);
  admissions_.erase(found);
  return closed;
}

std::vector<Receipt> CacheLedger::receipts() const {
  std::vector<Receipt> all;
  all.reserve(admissions_.size());
  for (const auto& [ticket, admission] : admissions_) all.push_back(admission.receipt);
  return all;
}

}  // namespace memory
