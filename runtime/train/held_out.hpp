// How a run does on documents that it does not learn from, source by source: the loss, and how many
// learnt tokens the network finds the likeliest. The second shows first that something is being
// learnt which a generated answer needs all of: copying, for one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/train/batch_stream.hpp"
#include "runtime/train/documents.hpp"
#include "runtime/train/trainer.hpp"

namespace runtime {

class HeldOut {
 public:
  HeldOut() = default;
  // Keeps what it needs of the documents. Appends to the csv file; its lines past `steps` go, so
  // that a resumed run continues them. Throws std::runtime_error naming the file.
  HeldOut(const Documents& documents, const BatchOptions& options, std::string csv_path,
          uint64_t steps);

  bool empty() const { return parts_.empty(); }
  struct Report {
    double loss = 0;   // nats per token of running text, or of all where there is none
    std::string text;  // "python3.11-doc 4.21 (25.1 % right), ..."
  };
  Report evaluate(Trainer& trainer, uint64_t step);

 private:
  struct Part {
    TextSource source;
    std::vector<TrainingBatch> batches;
  };
  std::string csv_path_;
  std::vector<Part> parts_;
};

}  // namespace runtime
