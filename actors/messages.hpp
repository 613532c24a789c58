// Every message between actors and every actor's interface. A payload is a plain struct in a
// single-owner box; whatever concerns plans names its rank group, so that a second group is a
// second scheduler beside the first.
#pragma once

#include <caf/atom.hpp>
#include <caf/replies_to.hpp>
#include <caf/type_id.hpp>
#include <caf/typed_actor.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "actors/boxed.hpp"
#include "actors/engine_host.hpp"
#include "actors/inspection.hpp"
#include "actors/scheduler_feed.hpp"
#include "actors/session_core.hpp"

CAF_BEGIN_TYPE_ID_BLOCK(sluice, caf::first_custom_type_id)
CAF_ADD_ATOM(sluice, actors, tick_atom, "tick")
CAF_ADD_ATOM(sluice, actors, flush_atom, "flush")
CAF_ADD_ATOM(sluice, actors, spill_atom, "spill")
CAF_END_TYPE_ID_BLOCK(sluice)

namespace actors {

struct Arrival {  // net thread -> gateway -> session
  runtime::RequestId id;
  uint64_t arrival_ns = 0;
  runtime::GenerateRequest request;
  Sink sink;
};

struct EndRequest {  // net thread -> gateway -> session
  runtime::RequestId id;
  kernels::Error error;
};

struct EngineLost {  // supervisor -> gateway -> every session
  kernels::Error error;
};

using SessionActor =
    caf::typed_actor<caf::reacts_to<Boxed<Arrival>>, caf::reacts_to<Boxed<EncodeOutcome>>,
                     caf::reacts_to<Boxed<SessionBatch>>, caf::reacts_to<Boxed<EndRequest>>,
                     caf::reacts_to<Boxed<EngineLost>>, caf::reacts_to<tick_atom>>;

using TextWorkerActor =
    caf::typed_actor<caf::replies_to<Boxed<EncodeJob>>::with<Boxed<EncodeOutcome>>>;

struct CacheRequests {  // scheduler -> cache manager, in order
  uint32_t rank_group = 0;
  std::vector<memory::CacheRequest> requests;
  bool flush = false;  // and then everything that nobody uses goes
  // And then what is cached is written to a file, until this time of the steady clock; 0: it is
  // not.
  uint64_t spill_by_ns = 0;
  std::optional<InspectCall> call = std::nullopt;  // and then this is answered
};
struct CacheAnswers {  // cache manager -> scheduler, in order
  uint32_t rank_group = 0;
  memory::CacheReply reply;
};
using CacheManagerActor =
    caf::typed_actor<caf::replies_to<Boxed<CacheRequests>>::with<Boxed<CacheAnswers>>>;

using WorkerActor =
    caf::typed_actor<caf::replies_to<Boxed<runtime::StepPlan>>::with<Boxed<StepOutcome>>>;

struct SubmitOrder {  // session -> scheduler
  runtime::Submit submit;
  uint64_t arrival_ns = 0;
  SessionActor session;
};
struct SessionOrders {  // session (or the gateway for a dead one) -> scheduler
  std::vector<runtime::SchedulerEvent> events;
};
using SchedulerActor =
    caf::typed_actor<caf::reacts_to<Boxed<SubmitOrder>>, caf::reacts_to<Boxed<SessionOrders>>,
                     caf::reacts_to<Boxed<CacheAnswers>>, caf::reacts_to<Boxed<StepOutcome>>,
                     caf::reacts_to<tick_atom, uint64_t>,  // the time it was meant for, in us
                     caf::reacts_to<Boxed<InspectCall>>, caf::reacts_to<flush_atom>,
                     caf::reacts_to<spill_atom, uint64_t>>;  // the deadline, of the steady clock

struct GatewayWiring {  // supervisor -> gateway, once the engine is ready
  TextWorkerActor text_worker;
  SchedulerActor scheduler;
};
using GatewayActor =
    caf::typed_actor<caf::reacts_to<Boxed<Arrival>>, caf::reacts_to<Boxed<EndRequest>>,
                     caf::reacts_to<Boxed<EngineLost>>, caf::reacts_to<Boxed<GatewayWiring>>>;

struct WorkerLoaded {  // worker -> supervisor
  EngineFacts facts;
};
using SupervisorActor =
    caf::typed_actor<caf::reacts_to<Boxed<WorkerLoaded>>, caf::reacts_to<Boxed<InspectCall>>,
                     caf::reacts_to<flush_atom>, caf::reacts_to<spill_atom, uint64_t>>;

}  // namespace actors
