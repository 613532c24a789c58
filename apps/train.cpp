// sluice-train: makes models. `init` writes a seeded random one in Hugging Face layout.
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "runtime/checkpoint_presets.hpp"
#include "runtime/checkpoint_writer.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Makes models for sluice-serve."};
  app.require_subcommand(1);

  runtime::CheckpointOptions init;
  CLI::App* command =
      app.add_subcommand("init", "Write a seeded random model: config.json, weights and tokenizer");
  std::vector<std::string> presets;
  for (const auto name : runtime::preset_names()) presets.emplace_back(name);
  command->add_option("--preset", init.preset, "Geometry of the model")
      ->required()
      ->check(CLI::IsMember(presets));
  command->add_option("--out", init.directory, "Directory to write; created if missing")
      ->required();
  command->add_option("--seed", init.seed, "The same seed gives the same bytes")
      ->capture_default_str();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    runtime::write_checkpoint(init);
    std::cerr << "wrote " << init.preset << " (seed " << init.seed << ") to " << init.directory
              << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "sluice-train: " << error.what() << "\n";
    return 1;
  }
}
