// Encodes prompts off everyone's path.
#pragma once

#include <memory>

#include "actors/messages.hpp"

namespace actors {

struct TextWorkerState {
  TextWorkerState() = default;
  static inline const char* name = "text_worker";
};

TextWorkerActor::behavior_type text_worker(TextWorkerActor::stateful_pointer<TextWorkerState> self,
                                           std::shared_ptr<const TextEncoder> encoder);

}  // namespace actors
