#include "runtime/train/evaluation.hpp"

#include <algorithm>
#include <memory>
#include <numbers>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernels/cpu/thread_pool.hpp"
#include "runtime/adapter/adapter.hpp"
#include "runtime/hybrid_model.hpp"
#include "runtime/tokenizer.hpp"
#include "runtime/train/batch_stream.hpp"
#include "runtime/train/corpus_files.hpp"
#include "runtime/train/greedy_generation.hpp"
#include "runtime/train/tasks/answer_check.hpp"
#include "runtime/train/tasks/snippet_task.hpp"
#include "runtime/train/training_worker.hpp"
#include "runtime/weights.hpp"

namespace runtime {

namespace {

constexpr uint32_t kRows = 512;  // of one forward when answering

// One package's documents as tokens, learnt whole.
class TextDocuments final : public Documents {
 public:
  void add(std::vector<uint16_t> tokens) {
    tokens_.push_back(std::move(tokens));
    masks_.emplace_back(tokens_.back().size(), uint8_t{1});
  }
  size_t count() const override { return tokens_.size(); }
  Document document(size_t index) const override { return {tokens_[index], masks_[index]}; }

 private:
  std::vector<std::vector<uint16_t>> tokens_;
  std::vector<std::vector<uint8_t>> masks_;
};

class Evaluator {
 public:
  Evaluator(const EvaluationOptions& options,
            const std::function<void(const std::string&)>& progress)
      : options_(options),
        progress_(progress),
        config_(ModelConfig::load(options.model)),
        weights_(WeightsFile::load(options.model)),
        tokenizer_(Tokenizer::load(options.model)),
        ops_(kernels::make_cpu_ops(options.threads)) {
    if (tokenizer_ == nullptr)
      throw std::runtime_error(options.model + "/tiktoken.model: is missing");
    if (options.task.empty()) documents_ = read_corpus_file(corpus_file(options.corpus, true));
    if (!options.adapter.empty()) adapter_ = load_adapter(options.adapter, config_);
  }

  Scores run() {
    for (size_t source = 0; options_.task.empty() && source < scores_.size(); ++source)
      if (!is_example(static_cast<TextSource>(source))) read_text(source);
    answer_tasks();
    return scores_;
  }

 private:
  // Null: there is none.
  std::unique_ptr<const NetworkAdapter> packed_adapter() const {
    if (!adapter_) return nullptr;
    const AdapterParameters<float> parameters(config_, adapter_->layout, adapter_->settings.scale(),
                                              adapter_->factors.data(), nullptr);
    return std::make_unique<NetworkAdapter>(parameters, *ops_);
  }

  std::vector<TokenId> encode(std::string_view text) const {
    std::vector<TokenId> ids;
    tokenizer_->encode_text(text, ids);
    return ids;
  }

  void read_text(size_t source) {
    TextDocuments documents;
    for (const CorpusDocument& document : documents_) {
      if (document.package != kTextSourceNames[source]) continue;
      const auto ids = encode(document.text);
      documents.add({ids.begin(), ids.end()});
    }
    if (documents.count() == 0) return;
    progress_("reading " + std::string(kTextSourceNames[source]));
    const auto batches =
        cut_in_order(documents, {.rows = options_.context, .sequence_length = options_.context},
                     options_.text_tokens);
    ModelOptions model_options;
    model_options.max_rows = options_.context;
    const HybridNetwork network(config_, weights_, *ops_, model_options);
    kernels::cpu::ThreadPool pool(options_.threads);
    std::vector<std::unique_ptr<TrainingWorker>> workers;
    for (unsigned i = 0; i < options_.threads; ++i)
      workers.push_back(std::make_unique<TrainingWorker>(config_, model_options));
    const auto adapter = packed_adapter();
    std::vector<double> nats(batches.size());
    pool.parallel_for(batches.size(), [&](size_t i, unsigned thread) {
      if (batches[i].rows() == 0) return;
      nats[i] = workers[thread]->evaluate(network, batches[i], adapter.get()).loss;
    });
    SourceScore& score = scores_[source];
    for (size_t i = 0; i < batches.size(); ++i) {
      score.nats += nats[i];
      score.tokens += batches[i].rows();
      for (const TokenId target : batches[i].targets)
        score.bytes += tokenizer_->bytes(target).size();
    }
  }

  // What stands before the answer: everything up to the last segment that is not learnt.
  std::vector<TokenId> prompt_of(const Example& example) const {
    const auto segments = render_example(example);
    size_t end = segments.size();
    while (end > 0 && segments[end - 1].is_learnt) --end;
    std::vector<TokenId> ids;
    for (size_t i = 0; i < end; ++i) {
      const Segment& segment = segments[i].segment;
      if (segment.control) {
        ids.push_back(tokenizer_->special(segment.text).value());
      } else {
        tokenizer_->encode_text(segment.text, ids);
      }
    }
    return ids;
  }

  void answer_tasks() {
    if (options_.tasks == 0) return;
    std::vector<Example> examples;
    std::vector<std::vector<TokenId>> prompts;
    for (uint32_t i = 0; i < options_.tasks; ++i) {
      examples.push_back(options_.task == kSnippetTask
                             ? make_snippet_example(options_.seed, true, i)
                             : make_example({options_.seed, true, &documents_}, i));
      prompts.push_back(prompt_of(examples.back()));
    }
    ModelOptions model_options;
    model_options.max_rows = kRows;
    HybridModel model(config_, weights_, *ops_, model_options);
    model.adapt(packed_adapter());
    GenerationLimits limits;
    limits.tokens = options_.answer_tokens;
    limits.rows = kRows;
    limits.end_ids = config_.end_ids;
    const auto answers = generate_greedy(model, prompts, limits, [&](size_t done) {
      progress_("answered " + std::to_string(done) + " of " + std::to_string(prompts.size()));
    });
    for (size_t i = 0; i < examples.size(); ++i) {
      const AnswerMarks marks = check_answer(tokenizer_, examples[i], answers[i]);
      SourceScore& score = scores_[static_cast<size_t>(examples[i].source)];
      ++score.tasks;
      score.well_formed += marks.is_well_formed;
      score.right += marks.is_right;
    }
  }

  const EvaluationOptions& options_;
  const std::function<void(const std::string&)>& progress_;
  ModelConfig config_;
  WeightsFile weights_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<CorpusDocument> documents_;
  std::unique_ptr<kernels::Ops> ops_;
  std::optional<Adapter> adapter_;
  Scores scores_{};
};

}  // namespace

double SourceScore::bits_per_byte() const {
  return bytes == 0 ? 0 : nats / std::numbers::ln2 / static_cast<double>(bytes);
}

SourceScore total(const Scores& scores, bool examples) {
  SourceScore sum;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (is_example(static_cast<TextSource>(i)) != examples) continue;
    sum.nats += scores[i].nats;
    sum.tokens += scores[i].tokens;
    sum.bytes += scores[i].bytes;
    sum.tasks += scores[i].tasks;
    sum.well_formed += scores[i].well_formed;
    sum.right += scores[i].right;
  }
  return sum;
}

Scores evaluate_model(const EvaluationOptions& options,
                      const std::function<void(const std::string&)>& progress) {
  return Evaluator(options, progress).run();
}

}  // namespace runtime
