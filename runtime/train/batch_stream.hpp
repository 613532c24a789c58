// Cuts documents into the batches of a training run. Text and examples are two queues, each in a
// new random order every epoch; whichever is behind its share of the tokens gives the next piece.
// Text may be cut anywhere. An example is kept whole where it fits into a sequence, and waits for
// the next batch where it does not fit into the rows that are left.
// Invariant: the batches depend on documents, options and position alone.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/train/documents.hpp"
#include "runtime/train/training_batch.hpp"

namespace runtime {

struct BatchOptions {
  size_t rows = 1024;            // of a batch, all filled
  size_t sequence_length = 256;  // longest sequence
  double example_share = 0.35;   // of the rows, where there are both kinds
  // Weight in the loss of an example's tokens that the assistant did not produce: they are not to
  // be said, but what follows in them teaches to look back.
  float context_weight = 0;
  uint64_t seed = 1;
};

class BatchStream {
 public:
  // Where a queue stands; what a checkpoint keeps.
  struct Position {
    uint64_t epoch = 0, index = 0, offset = 0, rows = 0;
  };

  // `documents` must outlive the stream and hold a document of at least two tokens; throws
  // std::runtime_error otherwise.
  BatchStream(const Documents& documents, const BatchOptions& options);

  TrainingBatch next();

  Position text() const { return text_.position; }
  Position examples() const { return examples_.position; }
  void seek(const Position& text, const Position& examples);

 private:
  struct Queue {
    std::vector<uint32_t> documents, order;  // order: of this epoch
    Position position;
    const char* name;
  };
  void shuffle(Queue& queue) const;
  size_t piece(const Queue& queue, bool whole, size_t room) const;
  void take(Queue& queue, size_t count, TrainingBatch& batch);
  Queue& next_queue(size_t room);

  const Documents& documents_;
  BatchOptions options_;
  Queue text_, examples_;
};

// All documents in their order, once, cut at sequence_length; the last batch may be shorter. For
// evaluation: context has no weight. At most `most` rows (0: no limit).
std::vector<TrainingBatch> cut_in_order(const Documents& documents, const BatchOptions& options,
                                        size_t most = 0);

}  // namespace runtime
