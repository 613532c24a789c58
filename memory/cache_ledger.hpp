// Who owns which block, beside the tree: the open admissions and what each of them holds.
//
// Invariant: a page of an admission is either its own or the tree's (borrowed), never both; the
// borrowed ones lie on the path that its receipt locks.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "memory/cache_messages.hpp"
#include "memory/radix_tree.hpp"

namespace memory {

struct Admission {
  SequenceId sequence;
  CacheKey key;                // every element known so far
  std::vector<PageId> pages;   // in token order
  std::vector<bool> borrowed;  // by page: the tree's
  SlotId working;
  std::vector<SlotId> snapshots;
  Receipt receipt;

  uint32_t own_pages() const;
};

class CacheLedger {
 public:
  void open(uint64_t ticket, Admission admission);  // VERIFYs that the ticket is new
  Admission* find(uint64_t ticket);                 // nullptr: unknown
  Admission& at(uint64_t ticket);                   // VERIFYs that it is known
  Admission close(uint64_t ticket);
  const std::map<uint64_t, Admission>& all() const { return admissions_; }
  std::vector<Receipt> receipts() const;

 private:
  std::map<uint64_t, Admission> admissions_;  // by ticket, ordered so that reports are stable
};

}  // namespace memory
