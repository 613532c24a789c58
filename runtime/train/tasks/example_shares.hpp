// How often each generator of conversations has its turn.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "runtime/train/text_source.hpp"

namespace runtime {

using ExampleShares = std::array<int, kTextSourceNames.size()>;  // of their sum

// Those of the first stage of training, and of evaluations.
constexpr ExampleShares default_example_shares() {
  ExampleShares shares{};
  const auto set = [&](TextSource source, int percent) {
    shares[static_cast<size_t>(source)] = percent;
  };
  set(TextSource::kChat, 12);
  set(TextSource::kFacts, 15);
  set(TextSource::kWords, 12);
  set(TextSource::kNumbers, 11);
  set(TextSource::kLookup, 11);
  set(TextSource::kDocument, 10);
  set(TextSource::kTools, 29);
  return shares;
}

// From "tools=40", "copy=20", ...: those that are not named get nothing. Throws
// std::invalid_argument naming the text and what would be right.
ExampleShares parse_example_shares(const std::vector<std::string>& texts);

}  // namespace runtime
