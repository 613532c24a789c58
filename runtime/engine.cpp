#include "runtime/engine.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>
#include <utility>

#include "kernels/base/steady_clock.hpp"
#include "kernels/base/trace_events.hpp"
#include "kernels/base/verify.hpp"
#include "memory/checksum.hpp"
#include "runtime/batch_builder.hpp"
#include "runtime/block_table.hpp"
#include "runtime/sampler.hpp"
#include "runtime/sequence_record.hpp"

namespace runtime {
namespace {

// Rows of logits held at once. A step of decode rows fits; a prompt's log-probabilities, which want
// a row per token, take several rounds instead of chunk_tokens * vocabulary floats.
constexpr size_t kLogitRows = 64;

// Of a command's span in the process's trace.
const char* span_name(const memory::Bind&) { return "state.bind"; }
const char* span_name(const memory::Move&) { return "state.move"; }
const char* span_name(const memory::StageOut&) { return "state.stage_out"; }
const char* span_name(const memory::StageIn&) { return "state.stage_in"; }
const char* span_name(const memory::Discard&) { return "state.discard"; }
const char* span_name(const memory::Spill&) { return "state.spill"; }
const char* span_name(const memory::Clear&) { return "state.clear"; }
const char* span_name(const memory::Restore&) { return "state.restore"; }
const char* span_name(const Close&) { return "engine.close"; }
const char* span_name(const Forward&) { return "engine.forward"; }

bool all_finite(std::span<const float> values) {
  uint32_t bad = 0;
  for (const float value : values) {
    bad |= static_cast<uint32_t>((std::bit_cast<uint32_t>(value) & 0x7f800000u) == 0x7f800000u);
  }
  return bad == 0;
}

}  // namespace

EngineLayout EngineLayout::side_by_side(const CacheGeometry& geometry, uint32_t slots,
                                        uint32_t pages) {
  EngineLayout layout;
  layout.states = {0, geometry.state_bytes, slots};
  layout.pages = {slots * geometry.state_bytes, geometry.page_bytes, pages};
  layout.arena_bytes = layout.pages.offset + pages * geometry.page_bytes;
  return layout;
}

struct Engine::Impl {
  Impl(kernels::Device& device, std::unique_ptr<Model> owned_model,
       const EngineLayout& memory_layout)
      : model(std::move(owned_model)),
        layout(memory_layout),
        geometry(model->geometry()),
        arena(device.allocate(layout.arena_bytes)),
        host(layout.host_bytes),
        stream(device.make_stream()),
        slots(layout.states.blocks),
        pages(layout.pages.blocks),
        builder(geometry.page_tokens) {
    for (const memory::BlockPool::Region& region : {layout.states, layout.pages}) {
      VERIFY(region.offset + uint64_t{region.blocks} * region.block_bytes <= layout.arena_bytes);
    }
    VERIFY(layout.states.block_bytes >= geometry.state_bytes);
    VERIFY(layout.pages.block_bytes >= geometry.page_bytes);
  }

  void execute(const memory::Bind& bind) {
    table(bind.kind).bind(bind);
    if (!bad_blocks.empty()) bad_blocks.erase({bind.kind, bind.id});
    if (bind.zero)
      stream->fill_zero(block(bind.kind, bind.physical), region(bind.kind).block_bytes);
  }

  void execute(const memory::Move& move) {
    table(move.kind).move(move);
    stream->copy(block(move.kind, move.to), block(move.kind, move.from),
                 region(move.kind).block_bytes);
  }

  void execute(const memory::StageOut& stage) {
    const uint32_t physical = table(stage.kind).physical(stage.id, stage.generation);
    stream->copy(host.add(stage.host, used_bytes(stage.kind)), block(stage.kind, physical),
                 used_bytes(stage.kind));
    stream->synchronize();
    host.seal(stage.host);
  }

  void execute(const memory::StageIn& stage) {
    const uint32_t physical = table(stage.kind).physical(stage.id, stage.generation);
    if (!host.intact(stage.host)) {
      lost.push_back(stage.host);
      bad_blocks.insert({stage.kind, stage.id});
      return;
    }
    stream->copy(block(stage.kind, physical), host.at(stage.host).data.get(),
                 used_bytes(stage.kind));
  }

  void execute(const memory::Discard& discard) { host.discard(discard.host); }

  void execute(const memory::Spill& spill) {
    spilled = write_spill(spill_target, spill,
                          [this](const memory::SpillItem& item) { return source(item); });
  }

  std::optional<SpillSource> source(const memory::SpillItem& item) {
    if (item.host.value != 0) {
      if (!host.intact(item.host)) return std::nullopt;
      return SpillSource{host.at(item.host).span(), host.at(item.host).checksum};
    }
    const uint32_t physical = table(item.kind).physical(item.id, item.generation);
    leaving.resize(used_bytes(item.kind));
    stream->copy(leaving.data(), block(item.kind, physical), leaving.size());
    stream->synchronize();
    return SpillSource{leaving, memory::checksum(leaving)};
  }

  void execute(const memory::Clear& clear) {
    stream->fill_zero(state(clear.slot), geometry.state_bytes);
  }

  void execute(const memory::Restore& restore) {
    VERIFY(restore.from.index != restore.to.index);
    stream->copy(state(restore.to), state(restore.from), geometry.state_bytes);
  }

  void execute(const Close& close) {
    for (const SequenceId sequence : close.sequences) VERIFY(records.erase(sequence) == 1);
  }

  void execute(const Forward& forward) {
    VERIFY(!result);
    VERIFY(forward.step >= next_step);
    next_step = forward.step + 1;
    result.emplace();
    result->step = forward.step;
    result->start_ns = kernels::steady_now_ns();
    build(forward);
    run_model();
    const kernels::TraceSpan sampling("engine.sample", {{"rows", forward.rows.size()}});
    result->rows.reserve(forward.rows.size());
    for (size_t i = 0; i < forward.rows.size(); ++i)
      result->rows.push_back(row_result(forward.rows[i], i));
    result->lost = std::exchange(lost, {});
    result->end_ns = kernels::steady_now_ns();
  }

  void build(const Forward& forward) {
    builder.clear();
    for (const PlanRow& row : forward.rows) {
      if (row.start)
        records.insert_or_assign(row.sequence, SequenceRecord(*row.start, row.position));
      SequenceRecord& record = find(row.sequence);
      record.add_pages(row.new_pages);
      if (!bad_blocks.empty() && names_bad_block(record)) record.lose();
      if (record.lost()) {
        builder.skip();
      } else {
        builder.add(row, record, slots, pages);
      }
    }
  }

  bool names_bad_block(const SequenceRecord& record) const {
    const auto bad = [&](memory::BlockKind kind, uint32_t index) {
      return bad_blocks.count({kind, index}) != 0;
    };
    return bad(memory::BlockKind::kState, record.slot().index) ||
           std::any_of(record.pages().begin(), record.pages().end(), [&](const PageId& page) {
             return bad(memory::BlockKind::kPage, page.index);
           });
  }

  void run_model() {
    const ForwardBatch batch = builder.batch();
    wanted_rows = batch.logit_rows.size();
    group_begin = group_end = 0;
    if (batch.tokens.empty()) return;
    const CacheMemory memory{arena.data() + layout.states.offset, layout.states.block_bytes,
                             arena.data() + layout.pages.offset, layout.pages.block_bytes};
    {
      const kernels::TraceSpan span("model.forward", {{"rows", batch.tokens.size()},
                                                      {"sequences", batch.view.segments.size()}});
      model->forward(batch, memory);
    }
    stream->synchronize();
  }

  // Valid until the next call. Rows are asked for in ascending order, so each is computed once.
  std::span<float> logits_of(size_t logit_row) {
    const size_t vocab = model->vocab_size();
    if (logit_row < group_begin || logit_row >= group_end) {
      VERIFY(logit_row < wanted_rows);
      group_begin = logit_row;
      group_end = std::min(wanted_rows, logit_row + kLogitRows);
      const size_t rows = group_end - group_begin;
      if (logits.size() < rows * vocab) logits.resize(rows * vocab);
      model->logits(group_begin, rows, logits.data());
      stream->synchronize();
    }
    return {logits.data() + (logit_row - group_begin) * vocab, vocab};
  }

  RowResult row_result(const PlanRow& row, size_t index) {
    const BatchBuilder::Wanted& wanted = builder.wanted(index);
    SequenceRecord& record = find(row.sequence);
    RowResult out;
    out.sequence = row.sequence;
    out.token_position = record.length();
    out.lost = record.lost();
    if (out.lost) return out;
    const int32_t top = record.sampling().top_logprobs;
    out.prompt.reserve(wanted.prompt_count);
    for (uint32_t i = 0; i < wanted.count && !record.failed(); ++i) {
      const std::span<float> values = logits_of(wanted.logits_begin + i);
      if (!all_finite(values)) {
        record.fail();
      } else if (i < wanted.prompt_count) {
        const TokenId next = record.token_at(row.position + i + 1);
        out.prompt.push_back(position_logprobs(values, next, top));
      } else {
        choose(values, record, out);
      }
    }
    out.finite = !record.failed();
    if (!out.finite) out.prompt.clear();
    return out;
  }

  void choose(std::span<float> row_logits, SequenceRecord& record, RowResult& out) {
    const SamplingParams& params = record.sampling();
    std::span<float> editable = row_logits;
    if (params.top_logprobs >= 0) {  // they come from the logits as they are now
      scratch.assign(row_logits.begin(), row_logits.end());
      editable = scratch;
    }
    out.token =
        sample({editable, &params, &record.counts(), out.token_position, record.output_tokens()});
    out.finite = out.token.has_value();
    if (!out.finite) return record.fail();
    if (params.top_logprobs >= 0)
      out.logprobs = position_logprobs(row_logits, *out.token, params.top_logprobs);
    record.sampled(*out.token);
  }

  uint64_t used_bytes(memory::BlockKind kind) const {  // of a block
    return kind == memory::BlockKind::kState ? geometry.state_bytes : geometry.page_bytes;
  }
  BlockTable& table(memory::BlockKind kind) {
    return kind == memory::BlockKind::kState ? slots : pages;
  }
  const memory::BlockPool::Region& region(memory::BlockKind kind) const {
    return kind == memory::BlockKind::kState ? layout.states : layout.pages;
  }
  std::byte* block(memory::BlockKind kind, uint32_t physical) const {
    return arena.data() + region(kind).offset + physical * region(kind).block_bytes;
  }
  std::byte* state(SlotId slot) const {
    return block(memory::BlockKind::kState, slots.physical(slot.index, slot.generation));
  }

  SequenceRecord& find(SequenceId sequence) {
    const auto it = records.find(sequence);
    VERIFY(it != records.end());  // a row before its sequence's start, or after its Close
    return it->second;
  }

  std::unique_ptr<Model> model;
  EngineLayout layout;
  CacheGeometry geometry;
  kernels::Buffer arena;
  HostArena host;
  std::unique_ptr<kernels::Stream> stream;
  BlockTable slots, pages;
  std::unordered_map<SequenceId, SequenceRecord> records;
  // Blocks whose copy from the host failed, until they are bound anew; and the copies, until they
  // are told.
  std::set<std::pair<memory::BlockKind, uint32_t>> bad_blocks;
  std::vector<memory::HostBlock> lost;
  SpillTarget spill_target;
  std::vector<std::byte> leaving;  // one block on its way to the file
  std::optional<SpillReport> spilled;
  BatchBuilder builder;
  size_t wanted_rows = 0;                 // logit rows of the step
  size_t group_begin = 0, group_end = 0;  // those that `logits` holds
  std::vector<float> logits;              // [group, vocab], at most kLogitRows rows
  std::vector<float> scratch;             // [vocab]
  uint64_t next_step = 0;
  std::optional<StepResult> result;
};

Engine::Engine(kernels::Device& device, std::unique_ptr<Model> model, const EngineLayout& layout)
    : impl_(std::make_unique<Impl>(device, std::move(model), layout)) {}

Engine::~Engine() = default;

HostArena& Engine::host() { return impl_->host; }
void Engine::spill_to(SpillTarget target) { impl_->spill_target = std::move(target); }
std::optional<SpillReport> Engine::take_spilled() {
  return std::exchange(impl_->spilled, std::nullopt);
}

std::optional<StepResult> Engine::run(const StepPlan& plan) {
  for (const Command& command : plan.commands) {
    std::visit(
        [this](const auto& typed) {
          const kernels::TraceSpan span(span_name(typed));
          impl_->execute(typed);
        },
        command);
  }
  return std::exchange(impl_->result, std::nullopt);
}

}  // namespace runtime
