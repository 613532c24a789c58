#include "runtime/train/tokenizer_trainer.hpp"

#include <filesystem>
#include <stdexcept>

#include "runtime/tokenizer_files.hpp"
#include "runtime/train/corpus_files.hpp"
#include "runtime/train/pair_trainer.hpp"

namespace runtime {

size_t train_tokenizer(const TokenizerOptions& options) {
  if (options.ranks < 256) {
    throw std::runtime_error("ranks is " + std::to_string(options.ranks) +
                             "; a tokenizer needs 256 or more: the single bytes");
  }
  PairTrainer trainer;
  size_t bytes = 0;
  for (const CorpusDocument& document : read_corpus_file(corpus_file(options.corpus, false))) {
    trainer.add(document.text);
    bytes += document.text.size();
  }
  const auto tokens = trainer.train(options.ranks);
  std::error_code error;
  std::filesystem::create_directories(options.directory, error);
  if (error)
    throw std::runtime_error(options.directory + ": cannot be created (" + error.message() + ")");
  write_tokenizer_files(options.directory, tokens);
  return bytes;
}

}  // namespace runtime
