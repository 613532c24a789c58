#include "actors/system.hpp"

#include <algorithm>
#include <caf/all.hpp>
#include <future>
#include <utility>

#include "actors/engine_settings.hpp"
#include "actors/gateway.hpp"
#include "actors/supervisor.hpp"
#include "actors/system_impl.hpp"
#include "kernels/base/steady_clock.hpp"
#include "runtime/endings.hpp"

namespace actors {
namespace {

using kernels::Error;
using std::chrono::milliseconds;

constexpr milliseconds kInspectWait{5000};
constexpr milliseconds kAbortWait{
    5000};  // an abort needs a few messages, and at most the steps under way
constexpr milliseconds kSpillClose{100};  // from the deadline to the file's last byte

}  // namespace

System::Impl::Impl(const runtime::EngineConfig& config, SystemOptions settings)
    : options(std::move(settings)),
      desk(uint64_t{config.max_running_requests} + config.max_queue),
      telemetry(options.clock),
      spilling(!config.host_cache_dir.empty()),
      context{nullptr, options.clock, &telemetry, &cancellations} {
  // Sharing: with stealing a message waits in its sender's own queue until that one yields.
  caf_config.set("scheduler.policy",
                 options.testing_scheduler ? caf::atom("testing") : caf::atom("sharing"));
  caf_config.set("scheduler.max-threads", static_cast<size_t>(options.pool_threads));
  actors = std::make_unique<caf::actor_system>(caf_config);
  if (options.testing_scheduler)
    lab_ = dynamic_cast<caf::scheduler::test_coordinator*>(&actors->scheduler());
  gateway = actors->spawn(actors::gateway, &desk, static_cast<const SessionContext*>(&context));
  SupervisorStart start;
  start.config = config;
  start.factory = options.factory ? options.factory : model_factory(config);
  start.spawning.own_threads = !options.testing_scheduler;
  start.gateway = gateway;
  start.on_failure = options.on_failure;
  start.desk = &desk;
  start.stopping = &stopping;
  start.spills = &spills;
  start.context = &context;
  supervisor = actors->spawn(actors::supervisor, std::move(start));
}

// Top-down: refuse, end the requests, then the supervisor takes down the actors, and ~actor_system
// waits for them.
System::Impl::~Impl() {
  desk.close();
  shut(true);
  caf::anon_send_exit(supervisor, caf::exit_reason::user_shutdown);
  run_lab();
  gateway = GatewayActor();
  supervisor = SupervisorActor();
}

void System::Impl::end(runtime::RequestId request, const Error& error) {
  if (!desk.cancel(request, error)) return;
  cancellations.post(request, error.code);
  caf::anon_send(gateway, Boxed(EndRequest{request, error}));
}

void System::Impl::shut(bool stop) {
  for (const auto request : desk.open_requests()) end(request, runtime::shutting_down());
  if (stop) stopping = true;
  wait_empty(kAbortWait);
}

void System::Impl::run_lab() {
  while (lab_ != nullptr && lab_->has_job()) lab_->run_once();
}

bool System::Impl::wait_empty(milliseconds timeout) {
  run_lab();
  return desk.wait_empty(lab_ != nullptr ? milliseconds{0} : timeout);
}

System::System(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
System::~System() = default;

std::unique_ptr<System> System::start(const runtime::EngineConfig& config, SystemOptions options) {
  check_config(config);
  return std::unique_ptr<System>(new System(std::make_unique<Impl>(config, std::move(options))));
}

void System::wait_ready() const {
  impl_->run_lab();
  impl_->desk.wait_ready();
}

bool System::drain(milliseconds timeout) {
  impl_->desk.close();
  if (impl_->wait_empty(timeout)) return true;
  impl_->shut(!impl_->spilling);
  return false;
}

std::optional<runtime::SpillReport> System::spill(milliseconds timeout) {
  if (!impl_->spilling || impl_->stopping || impl_->desk.open_count() != 0) return std::nullopt;
  const auto timeout_ns = static_cast<uint64_t>(std::max<int64_t>(timeout.count(), 1)) * 1'000'000;
  caf::anon_send(impl_->supervisor, spill_atom_v, kernels::steady_now_ns() + timeout_ns);
  impl_->run_lab();
  return impl_->spills.wait(impl_->lab() != nullptr ? milliseconds{0} : timeout + kSpillClose);
}

ServicePhase System::phase() const { return impl_->desk.phase(); }
bool System::ready() const { return impl_->desk.ready(); }
ServiceInfo System::info() const { return impl_->desk.info(); }
std::shared_ptr<const runtime::Tokenizer> System::tokenizer() const {
  return impl_->desk.tokenizer();
}

kernels::Result<runtime::RequestId> System::submit(runtime::GenerateRequest request, Sink sink) {
  const auto id = impl_->desk.admit(request.rid, uint64_t{request.prompts.size()} * request.n);
  if (!id) return id.error();
  Arrival arrival{*id, impl_->options.clock(), std::move(request), std::move(sink)};
  caf::anon_send(impl_->gateway, Boxed(std::move(arrival)));
  return *id;
}

void System::abort(runtime::RequestId request) { impl_->end(request, runtime::request_aborted()); }

uint32_t System::abort_by_rid(const std::string& rid) {
  const auto found = impl_->desk.matching(rid);
  for (const auto request : found) abort(request);
  return static_cast<uint32_t>(found.size());
}

uint32_t System::abort_all() {
  const auto found = impl_->desk.open_requests();
  for (const auto request : found) abort(request);
  return static_cast<uint32_t>(found.size());
}

ServiceMetrics System::metrics() {
  ServiceMetrics metrics = impl_->telemetry.snapshot();
  metrics.open_requests = impl_->desk.open_count();
  metrics.rejected_total = impl_->desk.rejected_total();
  return metrics;
}

bool System::flush_cache() {
  if (impl_->desk.open_count() != 0) return false;
  caf::anon_send(impl_->supervisor, flush_atom_v);
  return true;
}

InspectionAnswer System::Impl::inspect(const Inspection& question) {
  // Shared: an answer that comes after the wait finds its promise still there.
  const auto promise = std::make_shared<std::promise<InspectionAnswer>>();
  auto answer = promise->get_future();
  caf::anon_send(supervisor,
                 Boxed(InspectCall(question, [promise](InspectionAnswer value) {
                   promise->set_value(std::move(value));
                 })));
  run_lab();
  if (answer.wait_for(kInspectWait) == std::future_status::ready) return answer.get();
  return Error{kernels::ErrorCode::kTimeout, "the engine did not answer in time", {}};
}

template <class Wanted>
kernels::Result<Wanted> as(InspectionAnswer answer) {
  if (auto* value = std::get_if<Wanted>(&answer)) return std::move(*value);
  if (auto* error = std::get_if<Error>(&answer)) return std::move(*error);
  return Error{kernels::ErrorCode::kInternal, "another question was answered", {}};
}

kernels::Result<memory::CacheReport> System::cache_report(const memory::ReportQuery& query) {
  return as<memory::CacheReport>(impl_->inspect(query));
}

kernels::Result<memory::MovePage> System::moves(const memory::MoveQuery& query) {
  return as<memory::MovePage>(impl_->inspect(query));
}

kernels::Result<memory::NodeOutcome> System::change_node(const memory::NodeOrder& order) {
  return as<memory::NodeOutcome>(impl_->inspect(order));
}

std::vector<NamedRequest> System::named_requests() { return impl_->desk.named(); }

}  // namespace actors
