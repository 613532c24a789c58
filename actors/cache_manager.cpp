#include "actors/cache_manager.hpp"

#include <caf/all.hpp>
#include <utility>

#include "actors/spawning.hpp"
#include "actors/traced.hpp"

namespace actors {
namespace {

CacheAnswers answer(memory::CacheCore& core, Telemetry& telemetry, const CacheRequests& batch) {
  CacheAnswers answers{batch.rank_group, {}};
  answers.answers.reserve(batch.requests.size());
  for (const auto& request : batch.requests) {
    if (const auto* reserve = std::get_if<memory::Reserve>(&request)) {
      answers.answers.push_back(core.handle(*reserve));
    } else {
      core.handle(std::get<memory::Release>(request));
    }
  }
  telemetry.publish(core.counts());
#ifndef NDEBUG
  core.check();
#endif
  return answers;
}

}  // namespace

CacheManagerActor::behavior_type cache_manager(
    CacheManagerActor::stateful_pointer<CacheManagerState> self,
    std::shared_ptr<memory::CacheCore> core, Telemetry* telemetry) {
  name_exceptions(self);
  self->state.core = std::move(core);
  telemetry->publish(self->state.core->counts());
  return {traced("cache_manager.requests", [=](Boxed<CacheRequests>& batch) {
    return Boxed(answer(*self->state.core, *telemetry, batch.take()));
  })};
}

}  // namespace actors
