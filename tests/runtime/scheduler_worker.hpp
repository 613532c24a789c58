// A worker without a model, for tests of the scheduler: executes plans on fake memory and checks
// every promise a plan makes. The next token is a hash of all tokens before it, kept in the state
// slot; a KV row holds the hash at its position, so a block that is written by the wrong sequence,
// or a checkpoint that belongs to another position or prefix, shows up at once.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <vector>

#include "runtime/scheduler.hpp"

namespace runtime_test {

using memory::BlockKind;
using memory::SequenceId;
using runtime::TokenId;

constexpr uint64_t kVocab = 13;

inline uint64_t mix(uint64_t state, uint64_t value) {
  state ^= value + 0x9e3779b97f4a7c15ull + (state << 6) + (state >> 2);
  state *= 0xff51afd7ed558ccdull;
  return state ^ (state >> 33);
}

inline uint64_t absorb(uint64_t state, TokenId token) {
  return mix(state, static_cast<uint64_t>(token) + 1);
}

inline TokenId choose(uint64_t state, uint64_t seed, uint32_t position) {
  return static_cast<TokenId>(mix(mix(state, seed), position) % kVocab);
}

inline float prompt_logprob(uint64_t state) { return -static_cast<float>(state % 1000); }

class FakeWorker {
 public:
  explicit FakeWorker(uint32_t page_tokens) : page_tokens_(page_tokens) {}

  // token_position at which this sequence's logits turn to NaN
  std::map<SequenceId, uint32_t> nan_at;

  std::optional<runtime::StepResult> run(const runtime::StepPlan& plan) {
    int last_kind = 0;
    std::optional<runtime::StepResult> result;
    for (const runtime::Command& command : plan.commands) {
      const int kind = std::visit([](const auto& c) { return rank(c); }, command);
      REQUIRE(kind >= last_kind);  // (Bind | Move)*, Close, (Clear | Restore)*, Forward
      last_kind = kind;
      if (const auto* close = std::get_if<runtime::Close>(&command)) {
        REQUIRE(!close->sequences.empty());
        for (const SequenceId id : close->sequences) REQUIRE(records_.erase(id) == 1);
      } else if (const auto* bind = std::get_if<memory::Bind>(&command)) {
        execute(*bind);
      } else if (const auto* move = std::get_if<memory::Move>(&command)) {
        execute(*move);
      } else if (const auto* clear = std::get_if<memory::Clear>(&command)) {
        state(clear->slot) = {};
      } else if (const auto* restore = std::get_if<memory::Restore>(&command)) {
        state(restore->to) = state(restore->from);
      } else {
        REQUIRE(!result);
        result = execute(std::get<runtime::Forward>(command));
      }
    }
    return result;
  }

  size_t record_count() const { return records_.size(); }

 private:
  struct Place {
    uint32_t generation = 0, physical = 0;
    bool valid = false;
  };
  struct Record {
    runtime::SequenceStart start;
    std::vector<TokenId> tokens;
    std::vector<memory::PageId> pages;
    std::vector<uint64_t> rows;  // what the KV rows must hold, as far as this admission computed
    uint32_t first = 0;          // the first position it computed
    uint32_t length = 0;
  };
  struct State {
    uint64_t hash = 0;
    uint32_t position = 0;
  };

  static int rank(const memory::Bind&) { return 0; }
  static int rank(const memory::Move&) { return 0; }
  static int rank(const memory::StageOut&) { return 0; }  // without host memory there are none
  static int rank(const memory::StageIn&) { return 0; }
  static int rank(const memory::Discard&) { return 0; }
  static int rank(const memory::Spill&) { return 0; }
  static int rank(const runtime::Close&) { return 1; }
  static int rank(const memory::Clear&) { return 2; }
  static int rank(const memory::Restore&) { return 2; }
  static int rank(const runtime::Forward&) { return 3; }

  void execute(const memory::Bind& bind) {
    auto& table = places_[bind.kind];
    Place& place = table[bind.id];
    REQUIRE(bind.generation > place.generation);
    for (auto& [id, other] : table) {  // whoever had this memory before has lost it
      if (other.physical == bind.physical) other.valid = false;
    }
    place = {bind.generation, bind.physical, true};
  }

  uint32_t physical(BlockKind kind, uint32_t id, uint32_t generation) {
    const Place& place = places_[kind][id];
    if (!place.valid || place.generation != generation)
      FAIL("a plan named a block that is not bound");
    return place.physical;
  }

  void execute(const memory::Move& move) {
    REQUIRE(physical(move.kind, move.id, move.generation) == move.from);
    auto& table = places_[move.kind];
    for (auto& [id, other] : table) {
      if (id != move.id && other.physical == move.to) other.valid = false;
    }
    table[move.id].physical = move.to;
    if (move.kind == BlockKind::kState) {
      states_[move.to] = states_[move.from];
      return;
    }
    for (uint32_t row = 0; row < page_tokens_; ++row)
      cells_[{move.to, row}] = cells_[{move.from, row}];
  }

  State& state(memory::SlotId slot) {
    return states_[physical(BlockKind::kState, slot.index, slot.generation)];
  }

  uint64_t& cell(const Record& record, uint32_t position) {
    const memory::PageId page = record.pages.at(position / page_tokens_);
    return cells_[{physical(BlockKind::kPage, page.index, page.generation),
                   position % page_tokens_}];
  }

  runtime::StepResult execute(const runtime::Forward& forward) {
    REQUIRE(forward.step == last_step_ + 1);
    last_step_ = forward.step;
    runtime::StepResult result;
    result.step = forward.step;
    std::set<SequenceId> seen;
    for (const runtime::PlanRow& row : forward.rows) {
      REQUIRE(seen.insert(row.sequence).second);
      result.rows.push_back(execute(row));
    }
    return result;
  }

  runtime::RowResult execute(const runtime::PlanRow& row) {
    if (row.start) {
      Record fresh{*row.start, row.start->tokens, {}, {}, row.position, row.position};
      REQUIRE(records_.emplace(row.sequence, std::move(fresh)).second);
    }
    REQUIRE(records_.contains(row.sequence));
    Record& record = records_.at(row.sequence);
    record.pages.insert(record.pages.end(), row.new_pages.begin(), row.new_pages.end());
    REQUIRE(row.count > 0);
    REQUIRE(row.position == record.length);
    REQUIRE(row.position + row.count <= record.tokens.size());
    if (row.position >= record.start.tokens.size()) REQUIRE(row.count == 1);

    State& now = state(record.start.slot);
    REQUIRE(now.position == row.position);  // a wrong checkpoint, or none where one was due
    runtime::RowResult result;
    result.sequence = row.sequence;
    for (uint32_t p = row.position; p < row.position + row.count; ++p) {
      now = {absorb(now.hash, record.tokens[p]), p + 1};
      if (p >= record.start.shared) cell(record, p) = now.hash;
      record.rows.push_back(now.hash);
      save(row, record, now);
      if (record.start.prompt_logprobs && p + 1 < record.start.prompt_tokens) {
        result.prompt.push_back({{record.tokens[p + 1], prompt_logprob(now.hash)}, {}});
      }
    }
    record.length = row.position + row.count;
    check_rows(record);
    const auto nan = nan_at.find(row.sequence);
    if (nan != nan_at.end() && record.length >= nan->second) {
      result.finite = false;  // and the tokens of this row mean nothing
      record.tokens.push_back(0);
      return result;
    }
    if (row.sample) {
      REQUIRE(record.length == record.tokens.size());
      result.token = choose(now.hash, record.start.sampling.seed, record.length);
      result.token_position = record.length;
      record.tokens.push_back(*result.token);
      result.logprobs = runtime::PositionLogprobs{{*result.token, prompt_logprob(now.hash)}, {}};
    }
    return result;
  }

  void save(const runtime::PlanRow& row, const Record& record, const State& now) {
    for (const runtime::Snapshot& snapshot : row.snapshots) {
      REQUIRE(snapshot.position > row.position);
      REQUIRE(snapshot.position <= row.position + row.count);
      REQUIRE(snapshot.slot.index != record.start.slot.index);
      if (snapshot.position == now.position) state(snapshot.slot) = now;
    }
  }

  // Every KV row before its end is what it, or whoever computed the prefix, wrote.
  void check_rows(const Record& record) {
    uint64_t hash = 0;
    bool intact = true;
    for (uint32_t p = 0; p < record.length; ++p) {
      hash = absorb(hash, record.tokens[p]);
      intact = intact && cell(record, p) == hash;
      if (p >= record.first) intact = intact && record.rows[p - record.first] == hash;
    }
    REQUIRE(intact);
  }

  uint32_t page_tokens_;
  uint64_t last_step_ = 0;
  std::map<BlockKind, std::map<uint32_t, Place>> places_;
  std::map<uint32_t, State> states_;                         // by physical slot
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> cells_;  // by physical page and row
  std::map<SequenceId, Record> records_;
};

}  // namespace runtime_test
