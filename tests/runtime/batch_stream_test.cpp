// How documents become batches.
#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "runtime/train/batch_stream.hpp"
#include "tests/support/toy_documents.hpp"

using runtime::BatchOptions;
using runtime::BatchStream;
using runtime::TrainingBatch;

namespace {

// Where a piece of tokens lies in the documents: VERIFYs that there is such a document, and that
// targets and weights are those of the tokens after it.
struct Found {
  size_t document, offset;
};
Found find(const support::ToyDocuments& documents, const TrainingBatch& batch,
           const kernels::Sequence& sequence) {
  for (size_t i = 0; i < documents.count(); ++i) {
    const auto document = documents.document(i);
    for (size_t at = 0; at + sequence.count < document.tokens.size(); ++at) {
      bool same = true;
      for (size_t t = 0; t < sequence.count && same; ++t) {
        const size_t row = sequence.begin + t;
        same = batch.tokens[row] == document.tokens[at + t] &&
               batch.targets[row] == document.tokens[at + t + 1] &&
               (batch.weights[row] != 0) == (document.mask[at + t + 1] != 0);
      }
      if (same) return {i, at};
    }
  }
  FAIL("a sequence is no piece of any document");
  return {};
}

}  // namespace

TEST_CASE("A batch is full of pieces of documents, and an example is never cut",
          "[runtime][train]") {
  const support::ToyDocuments documents(60, 60000, 3);  // so that pieces are found once
  const BatchOptions options{.rows = 128, .sequence_length = 40, .example_share = 0.3, .seed = 5};
  BatchStream stream(documents, options);
  size_t example_rows = 0, rows = 0;
  for (int i = 0; i < 40; ++i) {
    const TrainingBatch batch = stream.next();
    REQUIRE(batch.rows() == options.rows);
    size_t begin = 0;
    for (const auto& sequence : batch.sequences) {
      CHECK(sequence.begin == begin);
      CHECK(sequence.count >= 1);
      CHECK(sequence.count <= options.sequence_length);
      const Found found = find(documents, batch, sequence);
      const auto document = documents.document(found.document);
      if (runtime::is_example(document.source)) CHECK(sequence.count == document.tokens.size() - 1);
      begin += sequence.count;
    }
    CHECK(begin == batch.rows());
    rows += batch.rows();
  }
  example_rows = stream.examples().rows;
  CHECK(static_cast<double>(example_rows) == Approx(0.3 * static_cast<double>(rows)).margin(64));
}

TEST_CASE("An epoch holds every token of the text once", "[runtime][train]") {
  const support::ToyDocuments documents(30, 1000, 9);
  BatchStream stream(documents, {.rows = 64, .sequence_length = 32, .example_share = 0, .seed = 2});
  std::map<std::pair<int32_t, int32_t>, int> seen, expected;
  for (size_t i = 0; i < documents.count(); ++i) {
    const auto document = documents.document(i);
    if (runtime::is_example(document.source)) continue;
    for (size_t t = 0; t + 1 < document.tokens.size(); ++t)
      ++expected[{document.tokens[t], document.tokens[t + 1]}];
  }
  size_t rows = 0;
  for (const auto& [pair, count] : expected) rows += static_cast<size_t>(count);
  for (size_t row = 0; row < rows;) {
    const TrainingBatch batch = stream.next();
    for (size_t i = 0; i < batch.rows() && row < rows; ++i, ++row)
      ++seen[{batch.tokens[i], batch.targets[i]}];
  }
  CHECK(seen == expected);
}

TEST_CASE("A stream that is sought to a position goes on from there", "[runtime][train]") {
  const support::ToyDocuments documents(40, 50, 4);
  const BatchOptions options{.rows = 96, .sequence_length = 48, .seed = 6};
  BatchStream stream(documents, options);
  for (int i = 0; i < 57; ++i) stream.next();  // several epochs
  CHECK(stream.examples().epoch > 1);
  BatchStream other(documents, options);
  other.seek(stream.text(), stream.examples());
  for (int i = 0; i < 20; ++i) {
    const TrainingBatch a = stream.next(), b = other.next();
    CHECK(a.tokens == b.tokens);
    CHECK(a.weights == b.weights);
  }
}

TEST_CASE("Documents are cut in order for evaluation, up to a limit", "[runtime][train]") {
  const support::ToyDocuments documents(12, 50, 8);
  size_t rows = 0;
  for (size_t i = 0; i < documents.count(); ++i)
    rows += documents.document(i).tokens.size() - 1;
  const BatchOptions options{.rows = 64, .sequence_length = 32};
  size_t cut = 0;
  for (const auto& batch : cut_in_order(documents, options)) {
    CHECK(batch.rows() <= options.rows);
    cut += batch.rows();
  }
  CHECK(cut == rows);
  cut = 0;
  for (const auto& batch : cut_in_order(documents, options, 100)) cut += batch.rows();
  CHECK(cut == 100);
}
