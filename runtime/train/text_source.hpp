// Where a document of a dataset comes from, so that mixtures can be weighted and losses told apart.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace runtime {

// The numbers are part of the dataset's format.
enum class TextSource : uint8_t {
  kPython,
  kSqlite,
  kPostgres,
  kJargon,  // packages of the corpus
  kChat,
  kFacts,
  kWords,
  kNumbers,
  kLookup,
  kDocument,
  kTools,   // generators of conversations
  kCopy,
  kRecall  // of random tokens, not a conversation
};

inline constexpr std::array<std::string_view, 13> kTextSourceNames{
    "python3.11-doc", "sqlite3-doc", "postgresql-doc-15", "dict-jargon", "chat", "facts", "words",
    "numbers",        "lookup",      "document",          "tools",       "copy", "recall"};

// Whether a generator made it, else it is running text.
constexpr bool is_example(TextSource source) { return source >= TextSource::kChat; }

// Whether a generator of conversations made it.
constexpr bool is_conversation(TextSource source) {
  return is_example(source) && source != TextSource::kRecall;
}

constexpr std::string_view text_source_name(TextSource source) {
  return kTextSourceNames[static_cast<size_t>(source)];
}

constexpr std::optional<TextSource> find_text_source(std::string_view name) {
  for (size_t i = 0; i < kTextSourceNames.size(); ++i) {
    if (kTextSourceNames[i] == name) return static_cast<TextSource>(i);
  }
  return std::nullopt;
}

}  // namespace runtime
