// Who gives up its blocks when a running sequence cannot get its next page.
#pragma once

#include <span>

#include "runtime/sequence.hpp"

namespace runtime {

// Lowest priority first, then fewest output tokens (the least work lost), then latest arrival.
// `running` is in the order of goes_before(); its first never yields, so it always comes to its end
// and no set of sequences can retract each other for ever. nullptr: nobody but the first runs.
Sequence* choose_victim(std::span<Sequence* const> running);

}  // namespace runtime
