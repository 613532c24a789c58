// Encodes prompts off everyone's path.
#pragma once

#include <memory>

#include "actors/front_desk.hpp"
#include "actors/messages.hpp"

namespace actors {

struct TextWorkerState {
  TextWorkerState() = default;
  static inline const char* name = "text_worker";
};

struct TextWorkerStart {
  std::shared_ptr<const TextEncoder> encoder;
  const FrontDesk* desk = nullptr;  // knows who is still wanted; outlives all actors
  Clock clock;
};

// A job whose request has ended, or is past its deadline, is answered at once: before it is begun
// or while it runs. Every job gets its outcome, which is what frees the request's credit.
TextWorkerActor::behavior_type text_worker(TextWorkerActor::stateful_pointer<TextWorkerState> self,
                                           TextWorkerStart start);

}  // namespace actors
