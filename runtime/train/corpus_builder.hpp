// Builds the corpus: the texts of installed documentation packages, without near duplicates, cut
// into a training and a held-out file, with a manifest of what they hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace runtime {

struct CorpusOptions {
  std::string directory;           // created if missing
  std::optional<uint32_t> max_mb;  // of training text, in 10^6 bytes
  std::string root;                // stands before every path that is read: a test's own machine
};

struct CorpusSummary {
  size_t documents = 0, bytes = 0;  // to train on
  size_t held_out_documents = 0, held_out_bytes = 0;
  size_t near_duplicates = 0;
};

// Writes train.jsonl, held_out.jsonl and manifest.json: the same bytes for the same packages.
// Held out are the documents of the three documentation packages that is_in_held_out_fiftieth
// names. They are looked at first, so that what repeats one of them is not trained on.
// Throws std::runtime_error.
CorpusSummary build_corpus(const CorpusOptions& options);

}  // namespace runtime
