// Greedy answers to many prompts at once, without a server: a model, the cache of a few sequences,
// and a loop. For measuring a model that is being trained.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/model.hpp"

namespace runtime {

struct GenerationLimits {
  uint32_t sequences = 32;     // that decode together
  uint32_t tokens = 256;       // of one answer, at most
  uint32_t rows = 512;         // of one forward: the model's max_rows
  std::span<const TokenId> end_ids;
};

// The answer to prompts[i] includes the end id that closed it. The same as a server's at
// temperature 0: rows do not depend on the batch. Prompts are not empty. `done`, where given, is
// called with the number of finished prompts now and then.
std::vector<std::vector<TokenId>> generate_greedy(Model& model,
                                                  const std::vector<std::vector<TokenId>>& prompts,
                                                  const GenerationLimits& limits,
                                                  const std::function<void(size_t)>& done = {});

}  // namespace runtime
