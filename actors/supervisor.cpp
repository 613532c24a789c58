#include "actors/supervisor.hpp"

#include <caf/all.hpp>
#include <string>
#include <utility>

#include "actors/cache_manager.hpp"
#include "actors/scheduler.hpp"
#include "actors/text_worker.hpp"
#include "actors/traced.hpp"
#include "actors/worker.hpp"

namespace actors {
namespace {

using Self = SupervisorActor::stateful_pointer<SupervisorState>;

constexpr uint32_t kRankGroup = 0;  // the one group of ranks

// What a failure() says, without CAF's decoration.
std::string reason_text(const caf::error& reason) {
  if (reason.context().match_elements<std::string>())
    return reason.context().get_as<std::string>(0);
  return reason == caf::none ? "it ended" : caf::to_string(reason);
}

void assemble(Self self, EngineFacts facts) {
  SupervisorState& state = self->state;
  SessionContext& context = *state.start.context;
  const memory::MoveGeometry geometry = facts.cache->move_geometry();
  state.cache_manager =
      self->spawn<caf::monitored>(cache_manager, std::move(facts.cache),
                                  std::move(facts.cache_log), context.telemetry);
  const FeedContext feed{kRankGroup,       context.clock,          context.telemetry,
                         context.cancellations, state.start.desk, geometry,
                         facts.move_log,   facts.check_moves,     std::move(facts.scheduler_log)};
  // On a thread of its own a result never waits behind the sessions' work for the step before.
  state.scheduler =
      spawn_with_thread(self, state.start.spawning, scheduler,
                        SchedulerStart{facts.scheduler, feed, state.worker, state.cache_manager});
  auto encoder = std::make_shared<const TextEncoder>(facts.tokenizer, std::move(facts.limits));
  // A long prompt takes its thread for a while: nobody else's.
  state.text_worker =
      spawn_with_thread(self, state.start.spawning, text_worker,
                        TextWorkerStart{std::move(encoder), state.start.desk, context.clock});
  context.tokenizer = facts.tokenizer;
  context.arithmetic_id = facts.arithmetic_id;
  self->send(state.start.gateway, Boxed(GatewayWiring{state.text_worker, state.scheduler}));
  state.start.desk->open(std::move(facts.info), std::move(facts.tokenizer));
}

std::string name_of(const SupervisorState& state, const caf::actor_addr& source) {
  if (source == state.worker) return "worker";
  if (source == state.scheduler) return "scheduler";
  if (source == state.cache_manager) return "cache manager";
  if (source == state.text_worker) return "text worker";
  return "gateway";
}

void lose(Self self, const caf::down_msg& down) {
  SupervisorState& state = self->state;
  FrontDesk& desk = *state.start.desk;
  const bool starting = desk.phase().kind == ServicePhase::Kind::kStarting;
  const std::string text = reason_text(down.reason);
  const std::string name = name_of(state, down.source);
  const std::string reason = starting ? text : "the " + name + " was lost: " + text;
  if (!desk.fail(reason)) return;  // one loss brings others
  if (starting) return;            // a model that does not load is reported by wait_ready()
  self->send(
      state.start.gateway,
      Boxed(EngineLost{{kernels::ErrorCode::kInternal, "the engine has failed: " + text, {}}}));
  if (state.start.on_failure) state.start.on_failure(reason);
}

// Until the engine is assembled there is nobody to tell.
template <class... Parts>
void tell_scheduler(Self self, Parts&&... parts) {
  if (self->state.scheduler) self->send(self->state.scheduler, std::forward<Parts>(parts)...);
}

void shut_down(Self self, caf::exit_msg& exit) {
  SupervisorState& state = self->state;
  self->set_down_handler([](caf::down_msg&) {});
  const auto end = [self](const auto& handle) {
    if (handle) self->send_exit(handle, caf::exit_reason::user_shutdown);
  };
  end(state.start.gateway);
  end(state.text_worker);
  end(state.scheduler);
  end(state.cache_manager);
  end(state.worker);
  self->quit(std::move(exit.reason));
}

}  // namespace

SupervisorActor::behavior_type supervisor(Self self, SupervisorStart start) {
  name_exceptions(self);
  SupervisorState& state = self->state;
  state.start = std::move(start);
  self->set_down_handler([=](caf::down_msg& down) { lose(self, down); });
  self->set_exit_handler([=](caf::exit_msg& exit) { shut_down(self, exit); });
  self->monitor(state.start.gateway);
  state.worker = spawn_with_thread(self, state.start.spawning, worker, state.start.config,
                                   state.start.factory, SupervisorActor{self},
                                   WorkerLinks{state.start.stopping, state.start.spills});
  return {
      traced("supervisor.worker_loaded",
             [=](Boxed<WorkerLoaded>& loaded) { assemble(self, loaded.take().facts); }),
      traced("supervisor.inspect",
             [=](Boxed<InspectCall>& call) { tell_scheduler(self, std::move(call)); }),
      traced("supervisor.flush", [=](flush_atom) { tell_scheduler(self, flush_atom_v); }),
      traced("supervisor.spill",
             [=](spill_atom, uint64_t by_ns) { tell_scheduler(self, spill_atom_v, by_ns); }),
  };
}

}  // namespace actors
