// Replays a move log and proves that no state and no page was ever in two hands. Its rules:
//
//   order      numbers ascend by one; results of steps come back once each, in order
//   place      a record names a block that is held, by its generation, where it lies
//   owner      who writes or gives away a block owns it; nothing is bound or appended twice
//   overlap    no two blocks share a byte of the arena
//   source     nothing is written, reused or moved while a copy beside the plans reads or fills it
//   position   a sequence goes on where its state stands; a restore reads the state it asks for
//   final      what is donated or restored was written by steps whose results are back
//   end        no row after a sequence's end, and no block taken from a running one
//   left over  at the end of a whole run nothing is owned but by the tree (finish())
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "memory/move_log.hpp"

namespace memory {

struct MoveViolation {
  uint64_t number = 0;    // of the record; 0: of the log's end
  std::string_view rule;  // of the list above
  std::string text;       // what was wrong
};

// Invariant: what it knows of a block follows from the records taken. After a violation it goes on
// as if the record had been right.
class MoveChecker {
 public:
  // `whole`: the first record is the first move of the run. Otherwise blocks and sequences are
  // taken as they are found when a record first names them.
  MoveChecker(const MoveGeometry& geometry, bool whole);

  std::optional<MoveViolation> take(const MoveRecord& record);
  // The run is over and the log is whole: what is owned by sequences still. Empty: all was given
  // back, or is the tree's.
  std::vector<MoveViolation> finish() const;

  struct Totals {
    uint64_t records = 0, sequences = 0;  // sequences that run
    uint64_t slots_cached = 0, slots_held = 0, pages_cached = 0, pages_held = 0;
  };
  Totals totals() const;

 private:
  struct Owner {
    OwnerKind kind = OwnerKind::kNobody;
    uint64_t id = 0;
    bool operator==(const Owner&) const = default;
  };
  struct Block {
    enum class Use : uint8_t { kUnknown, kFree, kHeld };
    Use use = Use::kUnknown;
    bool adopted = false;  // its past is not in the log
    bool arriving = false;  // a StageIn fills it
    bool staged = false;    // one did
    uint32_t generation = 0, physical = kNowhere;
    Owner owner;
    // Of a state: the position it stands at; of the tree's: the checkpoint's, or a page's first.
    std::optional<uint32_t> position;
    uint64_t written_step = 0;  // the last one that wrote it; 0: none
    uint32_t filled = 0;        // of a page: rows from its first on
    uint32_t users = 0;         // running sequences that work in it or read it
  };
  struct Run {  // a sequence between its start and its end
    bool adopted = false;
    uint32_t working = 0;
    std::optional<uint32_t> position;
    uint32_t row_begin = 0;       // of its last write
    std::vector<uint32_t> pages;  // virtual indices
    uint32_t shared = 0;          // the first so many were the tree's
  };
  using Key = uint64_t;  // owner id

  Block* held(const MoveRecord& record, const BlockPlace& place);
  Block& at(BlockKind kind, uint32_t index);
  Run* run_of(const MoveRecord& record);
  void bind(const MoveRecord& record);
  void move(const MoveRecord& record);
  void start(const MoveRecord& record);
  void must_be_staged(const MoveRecord& record);
  void append(const MoveRecord& record);
  void write(const MoveRecord& record);
  void write_pages(const MoveRecord& record, Run& run);
  void snapshot(const MoveRecord& record);
  void step_done(const MoveRecord& record);
  void donate(const MoveRecord& record);
  void end(const MoveRecord& record);
  void free(const MoveRecord& record);
  void stage_out(const MoveRecord& record);
  void stage_in(const MoveRecord& record);

  void occupy(const MoveRecord& record, uint32_t physical, uint32_t index);
  void vacate(BlockKind kind, uint32_t physical, uint32_t index);
  void must_be_final(const MoveRecord& record, const Block& block);
  bool read(BlockKind kind, uint32_t physical) const;
  void must_be_writable(const MoveRecord& record, const Block& block);
  void must_own(const MoveRecord& record, const Block& block);
  void fail(std::string_view rule, std::string text);

  MoveGeometry geometry_;
  bool whole_;
  std::deque<Block> blocks_[2];                   // by kind, by virtual index; they stay in place
  std::map<uint32_t, uint32_t> occupants_[2];     // by kind: physical -> virtual index
  std::map<uint32_t, uint32_t> readers_[2];       // by kind: physical -> StageOuts under way
  std::unordered_map<Key, Run> runs_;             // by SequenceId::value
  uint64_t records_ = 0, next_ = 0;               // next_: number; 0: any
  uint64_t step_sent_ = 0, step_done_ = 0;
  bool step_known_ = false;
  uint64_t number_ = 0;  // of the record being taken
  std::optional<MoveViolation> violation_;
};

std::string to_text(const MoveViolation& violation);

// Checks as the log grows, and aborts the process at the first violation, naming it: for debug
// builds, like VERIFY.
void guard(MoveLog& log, const MoveGeometry& geometry);

}  // namespace memory
