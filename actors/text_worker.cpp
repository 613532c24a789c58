#include "actors/text_worker.hpp"

#include <caf/all.hpp>
#include <utility>

#include "actors/spawning.hpp"
#include "runtime/trace.hpp"

namespace actors {
namespace {

// A request that breaks the encoder fails alone; the text worker serves the next one.
kernels::Result<EncodedPrompts> encode(const TextEncoder& encoder,
                                       runtime::GenerateRequest& request) {
  try {
    return encoder.encode(request);
  } catch (const std::exception& error) {
    return kernels::Error{
        kernels::ErrorCode::kInternal, std::string("encoding failed: ") + error.what(), {}};
  }
}

EncodeOutcome run(const TextEncoder& encoder, EncodeJob job) {
  runtime::trace_hop(job.request_id, "text_worker.encode");
  auto encoded = encode(encoder, job.request);
  return {std::move(job.request), std::move(encoded)};
}

}  // namespace

TextWorkerActor::behavior_type text_worker(TextWorkerActor::stateful_pointer<TextWorkerState> self,
                                           std::shared_ptr<const TextEncoder> encoder) {
  name_exceptions(self);
  return {[=](Boxed<EncodeJob>& job) { return Boxed(run(*encoder, job.take())); }};
}

}  // namespace actors
