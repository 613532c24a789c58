// A step plan: the only thing that touches a rank's memory. An ordered list of commands; it may
// lack a Forward.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <variant>
#include <vector>

#include "memory/commands.hpp"
#include "memory/ids.hpp"
#include "runtime/request.hpp"

namespace runtime {

using memory::PageId;
using memory::SequenceId;
using memory::SlotId;

// Everything the worker must know to sample for a sequence; sent with its first row, and again
// after a retraction: the record (penalty counts, last token, length) is rebuilt from the tokens.
struct SequenceStart {
  SamplingParams sampling;
  std::vector<TokenId> tokens;  // prompt and, after a retraction, the output so far
  uint32_t prompt_tokens = 0;   // how many of them are prompt
  bool prompt_logprobs = false;
  SlotId slot;  // working slot
  // Positions below it lie in pages that other sequences read too: rows there read them and write
  // none.
  uint32_t shared = 0;
  auto fields() { return std::tie(sampling, tokens, prompt_tokens, prompt_logprobs, slot, shared); }
};

// The state after exactly `position` positions is written to `slot` as well, inside the forward
// that passes it.
struct Snapshot {
  uint32_t position = 0;
  SlotId slot;
  auto fields() { return std::tie(position, slot); }
};

// One sequence's part of a step. Its input is positions [position, position + count): literal ids
// from the record's tokens while position < tokens known at SequenceStart, else (count == 1) "the
// last sampled token", which the scheduler need not know.
struct PlanRow {
  SequenceId sequence;
  std::optional<SequenceStart> start;    // first row of an admission
  uint32_t position = 0;                 // absolute position of the first input token
  uint32_t count = 0;                    // tokens consumed
  std::vector<PageId> new_pages;         // appended to the record's page list before the row runs
  bool sample = false;                   // the last input token's logits choose the next token
  std::vector<Snapshot> snapshots = {};  // at positions in (position, position + count]
  auto fields() { return std::tie(sequence, start, position, count, new_pages, sample, snapshots); }
};

struct Forward {
  uint64_t step = 0;  // ascending
  std::vector<PlanRow> rows;
  auto fields() { return std::tie(step, rows); }
};

// Drops the worker's records. A sequence may still have been a ghost row in the plan before.
struct Close {
  std::vector<SequenceId> sequences;
  auto fields() { return std::tie(sequences); }
};

using Command =
    std::variant<memory::Bind, memory::Move, memory::StageOut, memory::StageIn, memory::Discard,
                 memory::Spill, memory::Clear, memory::Restore, Close, Forward>;

struct StepPlan {
  uint32_t rank_group = 0;  // the group of ranks that all execute this plan
  std::vector<Command> commands;
  auto fields() { return std::tie(rank_group, commands); }
};

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0;  // natural log, from the unmodified logits (temperature 1, no penalties)
  auto fields() { return std::tie(token, logprob); }
};

struct PositionLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // descending, ties to the lower id
  auto fields() { return std::tie(chosen, top); }
};

struct RowResult {
  SequenceId sequence;
  bool finite = true;  // false: NaN or infinity in the logits; the row ends its request alone
  // Not computed: a block that it names came back from host memory with other bytes. What follows
  // of this admission is not either.
  bool lost = false;
  std::optional<TokenId> token;              // if sampled
  uint32_t token_position = 0;               // absolute position that the sampled token takes
  std::optional<PositionLogprobs> logprobs;  // of the sampled token, if asked
  std::vector<PositionLogprobs>
      prompt;  // of prompt tokens at positions position + 1 ... (prompt_logprobs only)
  auto fields() {
    return std::tie(sequence, finite, lost, token, token_position, logprobs, prompt);
  }
};

struct StepResult {
  uint64_t step = 0;
  std::vector<RowResult> rows;  // in plan order
  // Copies whose bytes were found changed since the last result.
  std::vector<memory::HostBlock> lost = {};
  uint64_t start_ns = 0, end_ns = 0;  // steady clock: worker busy time, for the idle-gap metric
  auto fields() { return std::tie(step, rows, lost, start_ns, end_ns); }
};

}  // namespace runtime
