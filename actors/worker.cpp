#include "actors/worker.hpp"

#include <caf/all.hpp>
#include <utility>

#include "actors/spawning.hpp"
#include "actors/traced.hpp"

namespace actors {
namespace {

using Self = WorkerActor::stateful_pointer<WorkerState>;

StepOutcome run(Self self, const WorkerLinks& links, const runtime::StepPlan& plan) {
  if (*links.stopping) return {plan.rank_group, std::nullopt, std::nullopt};
  StepOutcome outcome = self->state.host->run(plan);
  if (outcome.failure) self->quit(failure(*outcome.failure));
  if (auto spilled = self->state.host->take_spilled()) links.spills->post(std::move(*spilled));
  return outcome;
}

}  // namespace

WorkerActor::behavior_type worker(Self self, runtime::EngineConfig config, ModelFactory factory,
                                  SupervisorActor supervisor, WorkerLinks links) {
  name_exceptions(self);
  try {
    self->state.host = std::make_unique<EngineHost>(config, factory);
  } catch (const std::exception& error) {
    self->quit(failure(error.what()));
    return WorkerActor::behavior_type::make_empty_behavior();
  }
  self->send(supervisor, Boxed(WorkerLoaded{self->state.host->take_facts()}));
  return {traced("worker.plan", [=](Boxed<runtime::StepPlan>& plan) {
    return Boxed(run(self, links, plan.take()));
  })};
}

}  // namespace actors
