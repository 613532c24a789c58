// sluice-train: makes models, and what they learn from. `init` writes a seeded random model in
// Hugging Face layout; `corpus` and `tokenizer` are the steps before training.
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "runtime/checkpoint_presets.hpp"
#include "runtime/checkpoint_writer.hpp"
#include "runtime/train/corpus_builder.hpp"
#include "runtime/train/tokenizer_trainer.hpp"

namespace {

void add_init(CLI::App& app) {
  auto* command =
      app.add_subcommand("init", "Write a seeded random model: config.json, weights and tokenizer");
  auto options = std::make_shared<runtime::CheckpointOptions>();
  std::vector<std::string> presets;
  for (const auto name : runtime::preset_names()) presets.emplace_back(name);
  command->add_option("--preset", options->preset, "Geometry of the model")
      ->required()
      ->check(CLI::IsMember(presets));
  command->add_option("--out", options->directory, "Directory to write; created if missing")
      ->required();
  command->add_option("--seed", options->seed, "The same seed gives the same bytes")
      ->capture_default_str();
  command->final_callback([options] {
    runtime::write_checkpoint(*options);
    std::cerr << "wrote " << options->preset << " (seed " << options->seed << ") to "
              << options->directory << "\n";
  });
}

void add_corpus(CLI::App& app) {
  auto* command = app.add_subcommand(
      "corpus", "Collect the text of installed Debian documentation, with a manifest");
  auto options = std::make_shared<runtime::CorpusOptions>();
  command->add_option("--out", options->directory, "Directory to write; created if missing")
      ->required();
  command
      ->add_option("--max-mb", options->max_mb,
                   "Training text in 10^6 bytes; whole documents, chosen by hash")
      ->check(CLI::PositiveNumber);
  command->final_callback([options] {
    const auto summary = runtime::build_corpus(*options);
    std::cerr << summary.documents << " documents of " << summary.bytes << " bytes to train on, "
              << summary.held_out_documents << " of " << summary.held_out_bytes
              << " bytes held out, " << summary.near_duplicates << " near duplicates removed\n";
  });
}

void add_tokenizer(CLI::App& app) {
  auto* command = app.add_subcommand("tokenizer", "Learn a byte-pair vocabulary from a corpus");
  auto options = std::make_shared<runtime::TokenizerOptions>();
  command->add_option("--corpus", options->corpus, "Directory that `corpus` wrote")->required();
  command->add_option("--out", options->directory, "Directory to write; created if missing")
      ->required();
  command->add_option("--ranks", options->ranks, "Tokens besides the 256 special ones")
      ->capture_default_str();
  command->final_callback([options] {
    const size_t bytes = runtime::train_tokenizer(*options);
    std::cerr << "learnt " << options->ranks << " ranks from " << bytes << " bytes of text\n";
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Makes models for sluice-serve, and what they learn from."};
  app.require_subcommand(1);
  add_init(app);
  add_corpus(app);
  add_tokenizer(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::cerr << "sluice-train: " << error.what() << "\n";
    return 1;
  }
}
