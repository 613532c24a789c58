#include "runtime/train/batch_stream.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "kernels/base/verify.hpp"
#include "runtime/counter_random.hpp"

namespace runtime {

namespace {

// The rows `count` from `offset` on become a sequence of their own.
void append(const Document& document, size_t offset, size_t count, float context_weight,
            TrainingBatch& batch) {
  // What stands before a recall is random: there is nothing to learn in it.
  if (document.source == TextSource::kRecall) context_weight = 0;
  batch.sequences.push_back({batch.rows(), count});
  for (size_t i = offset; i < offset + count; ++i) {
    batch.tokens.push_back(document.tokens[i]);
    batch.targets.push_back(document.tokens[i + 1]);
    batch.weights.push_back(document.mask[i + 1] != 0 ? 1.0f : context_weight);
  }
}

}  // namespace

BatchStream::BatchStream(const Documents& documents, const BatchOptions& options)
    : documents_(documents), options_(options) {
  text_.name = "text";
  examples_.name = "examples";
  for (size_t i = 0; i < documents.count(); ++i) {
    const Document document = documents.document(i);
    VERIFY(document.tokens.size() == document.mask.size());
    if (document.tokens.size() < 2) continue;  // nothing follows its only token
    (is_example(document.source) ? examples_ : text_).documents.push_back(static_cast<uint32_t>(i));
  }
  if (text_.documents.empty() && examples_.documents.empty())
    throw std::runtime_error("the dataset holds no document of two tokens or more");
  shuffle(text_);
  shuffle(examples_);
}

void BatchStream::shuffle(Queue& queue) const {
  const CounterRandom random(options_.seed + queue.position.epoch, queue.name);
  queue.order = queue.documents;
  for (size_t i = queue.order.size(); i > 1; --i)
    std::swap(queue.order[i - 1], queue.order[random.bits(i) % i]);
}

void BatchStream::seek(const Position& text, const Position& examples) {
  text_.position = text;
  examples_.position = examples;
  shuffle(text_);
  shuffle(examples_);
}

// Rows of the queue's next piece: at most `room`, unless it is to be whole.
size_t BatchStream::piece(const Queue& queue, bool whole, size_t room) const {
  const size_t tokens = documents_.document(queue.order[queue.position.index]).tokens.size();
  const size_t rest = std::min(tokens - 1 - queue.position.offset, options_.sequence_length);
  return whole ? rest : std::min(rest, room);
}

BatchStream::Queue& BatchStream::next_queue(size_t room) {
  if (examples_.order.empty()) return text_;
  if (text_.order.empty()) return examples_;
  const auto rows = static_cast<double>(text_.position.rows + examples_.position.rows);
  const bool behind =
      static_cast<double>(examples_.position.rows) < options_.example_share * (rows + 1);
  return behind && piece(examples_, true, room) <= room ? examples_ : text_;
}

void BatchStream::take(Queue& queue, size_t count, TrainingBatch& batch) {
  Position& at = queue.position;
  const Document document = documents_.document(queue.order[at.index]);
  append(document, at.offset, count, options_.context_weight, batch);
  at.rows += count;
  at.offset += count;
  if (at.offset + 1 < document.tokens.size()) return;
  at.offset = 0;
  if (++at.index < queue.order.size()) return;
  at.index = 0;
  ++at.epoch;
  shuffle(queue);
}

TrainingBatch BatchStream::next() {
  TrainingBatch batch;
  while (batch.rows() < options_.rows) {
    const size_t room = options_.rows - batch.rows();
    Queue& queue = next_queue(room);
    take(queue, piece(queue, false, room), batch);
  }
  return batch;
}

std::vector<TrainingBatch> cut_in_order(const Documents& documents, const BatchOptions& options,
                                        size_t most) {
  std::vector<TrainingBatch> batches(1);
  size_t rows = 0;
  for (size_t i = 0; i < documents.count(); ++i) {
    const Document document = documents.document(i);
    for (size_t at = 0; at + 1 < document.tokens.size();) {
      size_t count = std::min(document.tokens.size() - 1 - at, options.sequence_length);
      if (most != 0) count = std::min(count, most - rows);
      if (count == 0) return batches;
      if (batches.back().rows() + count > options.rows && batches.back().rows() != 0)
        batches.emplace_back();
      append(document, at, count, 0.0f, batches.back());
      at += count;
      rows += count;
    }
  }
  return batches;
}

}  // namespace runtime
