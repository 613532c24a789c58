#include "actors/text_worker.hpp"

#include <caf/all.hpp>
#include <utility>

#include "actors/spawning.hpp"
#include "actors/traced.hpp"
#include "runtime/trace.hpp"

namespace actors {
namespace {

// A request that breaks the encoder fails alone; the text worker serves the next one.
kernels::Result<EncodedPrompts> encode(const TextEncoder& encoder,
                                       runtime::GenerateRequest& request,
                                       const runtime::KeepGoing& wanted) {
  try {
    return encoder.encode(request, wanted);
  } catch (const std::exception& error) {
    return kernels::Error{
        kernels::ErrorCode::kInternal, std::string("encoding failed: ") + error.what(), {}};
  }
}

EncodeOutcome run(const TextWorkerStart& start, EncodeJob job) {
  const auto late = [&] { return job.deadline_ns != 0 && start.clock() >= job.deadline_ns; };
  const auto wanted = [&] { return start.desk->wanted(job.request_id) && !late(); };
  if (wanted()) {
    runtime::trace_hop(job.request_id, "text_worker.encode");
    auto encoded = encode(*start.encoder, job.request, wanted);
    if (wanted()) return {std::move(job.request), std::move(encoded)};
  }
  if (late()) return {std::move(job.request), late_for_encoding()};
  const auto why = start.desk->cancelled(job.request_id);
  return {std::move(job.request), why.value_or(encoding_stopped())};
}

}  // namespace

TextWorkerActor::behavior_type text_worker(TextWorkerActor::stateful_pointer<TextWorkerState> self,
                                           TextWorkerStart start) {
  name_exceptions(self);
  return {traced("text_worker.encode",
                 [=](Boxed<EncodeJob>& job) { return Boxed(run(start, job.take())); })};
}

}  // namespace actors
