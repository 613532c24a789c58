// A task for an adapter, which no model is pretrained on: to name the language of a few lines of
// code. Held-out examples are made of constructs, names and questions that no other example has.
#pragma once

#include <cstdint>

#include "runtime/train/tasks/example.hpp"

namespace runtime {

inline constexpr const char* kSnippetTask = "snippets";

// Depends on the arguments alone.
Example make_snippet_example(uint64_t seed, bool held_out, uint64_t index);

}  // namespace runtime
