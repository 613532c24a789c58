#include "runtime/train/dataset_builder.hpp"

#include <memory>
#include <stdexcept>
#include <vector>

#include "runtime/tokenizer.hpp"
#include "runtime/train/corpus_files.hpp"
#include "runtime/train/dataset.hpp"
#include "runtime/train/tasks/example.hpp"
#include "runtime/train/tasks/recall.hpp"
#include "runtime/train/tasks/snippet_task.hpp"

namespace runtime {

namespace {

class Builder {
 public:
  explicit Builder(const DatasetOptions& options) : options_(options) {
    tokenizer_ = Tokenizer::load(options.tokenizer);
    if (tokenizer_ == nullptr) {
      throw std::runtime_error(options.tokenizer +
                               "/tiktoken.model: is missing; `sluice-train tokenizer` writes it");
    }
    if (tokenizer_->size() > 1u << 16) {
      throw std::runtime_error(options.tokenizer + ": has " + std::to_string(tokenizer_->size()) +
                               " tokens; a dataset stores 65536 at most");
    }
  }

  DatasetSummary build() {
    if (options_.task == kSnippetTask) {
      for (uint32_t i = 0; i < options_.examples; ++i)
        add_example(make_snippet_example(options_.seed, options_.held_out, i));
    } else {
      add_corpus();
    }
    writer_.write(options_.file);
    return summary_;
  }

 private:
  void add_corpus() {
    const auto documents = read_corpus_file(corpus_file(options_.corpus, options_.held_out));
    for (const CorpusDocument& document : documents) add_document(document);
    ExampleOptions examples{options_.seed, options_.held_out, &documents};
    examples.shares = options_.shares;
    for (uint32_t i = 0; i < options_.examples; ++i) add_example(make_example(examples, i));
    for (uint32_t i = 0; i < options_.recalls; ++i) add_recall(i);
  }

  TokenId special(std::string_view name) const {
    const auto id = tokenizer_->special(name);
    if (!id) {
      throw std::runtime_error(options_.tokenizer + "/tokenizer_config.json: names no " +
                               std::string(name) + " token");
    }
    return *id;
  }

  void add_text(std::string_view text, bool is_learnt) {
    std::vector<TokenId> ids;
    tokenizer_->encode_text(text, ids);
    for (const TokenId id : ids) add_token(id, is_learnt);
    bytes_ += text.size();
  }

  void add_token(TokenId id, bool is_learnt) {
    tokens_.push_back(static_cast<uint16_t>(id));
    mask_.push_back(is_learnt ? 1 : 0);
  }

  void add_document(const CorpusDocument& document) {
    const auto source = find_text_source(document.package);
    if (!source) {
      throw std::runtime_error(options_.corpus + ": \"" + document.package +
                               "\" is no package of a corpus");
    }
    add_text(document.text, true);
    add_token(special("[EOS]"), true);
    finish(*source);
  }

  void add_example(const Example& example) {
    for (const auto& [segment, is_learnt] : render_example(example)) {
      if (segment.control) {
        add_token(special(segment.text), is_learnt);
      } else {
        add_text(segment.text, is_learnt);
      }
    }
    finish(example.source);
  }

  void add_recall(uint32_t index) {
    TaskRandom random(options_.seed, options_.held_out ? "held-out recall" : "recall", index);
    // The special tokens come last, this one first of them.
    const auto ranks = static_cast<uint32_t>(special("[BOS]"));
    RecallText text = make_recall(random, ranks, options_.recall_length);
    tokens_ = std::move(text.tokens);
    mask_ = std::move(text.mask);
    finish(TextSource::kRecall);
  }

  void finish(TextSource source) {
    writer_.add(tokens_, mask_, source);
    SourceSummary& summary = summary_[static_cast<size_t>(source)];
    ++summary.documents;
    summary.tokens += tokens_.size();
    summary.bytes += bytes_;
    for (const uint8_t learnt : mask_) summary.learnt += learnt;
    tokens_.clear();
    mask_.clear();
    bytes_ = 0;
  }

  const DatasetOptions& options_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  DatasetWriter writer_;
  DatasetSummary summary_{};
  std::vector<uint16_t> tokens_;  // of the document at hand
  std::vector<uint8_t> mask_;
  size_t bytes_ = 0;
};

}  // namespace

DatasetSummary build_dataset(const DatasetOptions& options) { return Builder(options).build(); }

}  // namespace runtime
