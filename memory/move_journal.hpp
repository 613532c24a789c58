// The cache manager's part of the move log: who got a block, who gave it back, what became the
// tree's. Its records travel with the commands, in one order with them.
#pragma once

#include "memory/cache_messages.hpp"
#include "memory/move_record.hpp"

namespace memory {

// Writes into the reply that begin() names. Invariant: every Bind and Move of that reply has its
// record, before the record of anything that came after it.
class MoveJournal {
 public:
  void begin(CacheReply& out, SequenceId sequence);  // whose request the next records are about
  void end() { catch_up(); }

  void add(const MoveRecord& record);
  // `place` as it is before the release.
  void free(MoveRecord record, const BlockPlace& place, FreeReason reason);

 private:
  void catch_up();
  void add_command(const Bind& bind);
  void add_command(const Move& move);
  void add_command(const StageOut& copy);
  void add_command(const StageIn& copy);
  void add_command(const Discard&) {}  // the host's own affair
  void add_command(const Spill&) {}    // reads, in the worker's order

  CacheReply* out_ = nullptr;
  SequenceId sequence_;
  size_t seen_ = 0;  // commands that have their record
};

}  // namespace memory
