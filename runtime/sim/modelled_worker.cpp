#include "runtime/sim/modelled_worker.hpp"

#include <utility>

#include "kernels/base/verify.hpp"

namespace runtime {

ModelledWorker::Outcome ModelledWorker::run(const StepPlan& plan) {
  outcome_ = {};
  for (const Command& command : plan.commands)
    std::visit([this](const auto& typed) { run(typed); }, command);
  return std::exchange(outcome_, {});
}

void ModelledWorker::run(const memory::Move& move) {
  PlanCopies& copies = outcome_.work.copies;
  ++(move.kind == memory::BlockKind::kState ? copies.states : copies.pages);
}

void ModelledWorker::run(const memory::StageOut& stage) {
  PlanCopies& copies = outcome_.work.copies;
  ++(stage.kind == memory::BlockKind::kState ? copies.states_out : copies.pages_out);
}

void ModelledWorker::run(const memory::StageIn& stage) {
  PlanCopies& copies = outcome_.work.copies;
  ++(stage.kind == memory::BlockKind::kState ? copies.states_in : copies.pages_in);
}

void ModelledWorker::run(const Close& close) {
  for (const SequenceId sequence : close.sequences) VERIFY(records_.erase(sequence) == 1);
}

void ModelledWorker::run(const Forward& forward) {
  VERIFY(!outcome_.result);
  StepResult result;
  result.step = forward.step;
  result.rows.reserve(forward.rows.size());
  for (const PlanRow& planned : forward.rows) result.rows.push_back(row(planned));
  if (speculation_ != nullptr) speculation_->end_step(outcome_.work.forward.decode_context);
  outcome_.result = std::move(result);
}

void ModelledWorker::decode(Record& record, const PlanRow& row) {
  StepShape& shape = outcome_.work.forward;
  if (speculation_ == nullptr) return shape.add_decode(row.position);
  speculation_->advance(record.block, row.sequence, row.position - record.prompt_tokens);
  shape.add_decode(row.position, record.block.width, 1.0 / record.block.committed);
}

void ModelledWorker::skip(SequenceId sequence, uint32_t length) {
  Record& record = records_.at(sequence);
  VERIFY(record.length <= length);
  record.length = length;
}

RowResult ModelledWorker::decoded(SequenceId sequence, uint32_t length) const {
  RowResult out;
  out.sequence = sequence;
  out.token_position = length;
  out.token = answers_(sequence, length - records_.at(sequence).prompt_tokens);
  return out;
}

RowResult ModelledWorker::row(const PlanRow& planned) {
  if (planned.start) {
    records_.insert_or_assign(planned.sequence,
                              Record{planned.start->prompt_tokens, planned.position, {}});
  }
  const auto found = records_.find(planned.sequence);
  VERIFY(found != records_.end());
  Record& record = found->second;
  VERIFY(record.length == planned.position);
  record.length += planned.count;
  if (planned.count == 1 && planned.position >= record.prompt_tokens) {
    decode(record, planned);
  } else {
    outcome_.work.forward.add_prefill(planned.position, planned.count);
  }
  outcome_.work.copies.states += static_cast<uint32_t>(planned.snapshots.size());
  RowResult out;
  out.sequence = planned.sequence;
  out.token_position = record.length;
  if (planned.sample) out.token = answers_(planned.sequence, record.length - record.prompt_tokens);
  return out;
}

}  // namespace runtime
