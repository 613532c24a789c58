#include "runtime/retraction.hpp"

#include <algorithm>

namespace runtime {
namespace {

bool yields_before(const Sequence* a, const Sequence* b) {
  if (a->priority != b->priority) return a->priority < b->priority;
  if (a->output_tokens() != b->output_tokens()) return a->output_tokens() < b->output_tokens();
  return a->arrival > b->arrival;
}

}  // namespace

Sequence* choose_victim(std::span<Sequence* const> running) {
  if (running.size() < 2) return nullptr;
  return *std::min_element(running.begin() + 1, running.end(), yields_before);
}

}  // namespace runtime
