#include "runtime/train/tokenizer_trainer.hpp"

#include <stdexcept>

#include "runtime/output_files.hpp"
#include "runtime/tokenizer_files.hpp"
#include "runtime/train/corpus_files.hpp"
#include "runtime/train/pair_trainer.hpp"
#include "runtime/train/tasks/example.hpp"

namespace runtime {

constexpr uint64_t kExampleSeed = 0x746f6b656e697a65;  // not one that a dataset would be given

size_t train_tokenizer(const TokenizerOptions& options) {
  if (options.ranks < 256) {
    throw std::runtime_error("ranks is " + std::to_string(options.ranks) +
                             "; a tokenizer needs 256 or more: the single bytes");
  }
  PairTrainer trainer;
  size_t bytes = 0;
  const auto add = [&](const std::string& text) {
    trainer.add(text);
    bytes += text.size();
  };
  const auto documents = read_corpus_file(corpus_file(options.corpus, false));
  for (const CorpusDocument& document : documents) add(document.text);
  const ExampleOptions examples{kExampleSeed, false, &documents};
  for (uint64_t i = 0; i < options.examples; ++i) {
    for (const LearntSegment& part : render_example(make_example(examples, i))) {
      if (!part.segment.control) add(part.segment.text);
    }
  }
  const auto tokens = trainer.train(options.ranks);
  make_directory(options.directory);
  write_tokenizer_files(options.directory, tokens);
  return bytes;
}

}  // namespace runtime
