#include "actors/cache_manager.hpp"

#include <caf/all.hpp>
#include <utility>

#include "actors/spawning.hpp"
#include "actors/traced.hpp"

namespace actors {
namespace {

struct Inspector {
  memory::HybridCache& cache;
  memory::CacheReply& reply;

  InspectionAnswer operator()(const memory::ReportQuery& query) const {
    return cache.report(query);
  }
  InspectionAnswer operator()(const memory::NodeOrder& order) const {
    auto outcome = cache.change(order, reply);
    if (!outcome) return outcome.error();
    return *outcome;
  }
  InspectionAnswer operator()(const memory::MoveQuery&) const {
    return kernels::invalid("the move log is the scheduler's");
  }
};

// Before it is answered: a log whose last request broke the cache shows it.
void record(memory::CacheLog& log, const CacheRequests& batch) {
  for (const auto& request : batch.requests) log.handle(request);
  if (batch.flush) log.flush();
  if (batch.call) {
    const auto* order = std::get_if<memory::NodeOrder>(&batch.call->question());
    if (order != nullptr) log.change(*order);
  }
  log.asked();
}

CacheAnswers answer(CacheManagerState& state, Telemetry& telemetry, CacheRequests batch) {
  CacheAnswers answers{batch.rank_group, {}};
  memory::HybridCache& cache = *state.cache;
  if (state.log) record(*state.log, batch);
  for (const auto& request : batch.requests) cache.handle(request, answers.reply);
  if (batch.flush) cache.flush(answers.reply);
  if (batch.spill_by_ns != 0) cache.spill(batch.spill_by_ns, answers.reply);
  if (batch.call)
    batch.call->answer(std::visit(Inspector{cache, answers.reply}, batch.call->question()));
  if (state.log) state.log->reply(answers.reply);
  telemetry.publish(cache.owners(), cache.counters());
  return answers;
}

}  // namespace

CacheManagerActor::behavior_type cache_manager(
    CacheManagerActor::stateful_pointer<CacheManagerState> self,
    std::shared_ptr<memory::HybridCache> cache, std::shared_ptr<memory::CacheLog> log,
    Telemetry* telemetry) {
  name_exceptions(self);
  self->state.cache = std::move(cache);
  self->state.log = std::move(log);
  telemetry->publish(self->state.cache->owners(), self->state.cache->counters());
  return {traced("cache_manager.requests", [=](Boxed<CacheRequests>& batch) {
    return Boxed(answer(self->state, *telemetry, batch.take()));
  })};
}

}  // namespace actors
