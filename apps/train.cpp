// sluice-train: makes models, and what they learn from. `init` writes a seeded random model in
// Hugging Face layout; `corpus`, `tokenizer` and `dataset` are the steps before training.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run_program.hpp"
#include "runtime/checkpoint_presets.hpp"
#include "runtime/checkpoint_writer.hpp"
#include "runtime/train/adapter_training.hpp"
#include "runtime/train/corpus_builder.hpp"
#include "runtime/train/corpus_files.hpp"
#include "runtime/train/dataset_builder.hpp"
#include "runtime/train/dataset_documents.hpp"
#include "runtime/train/evaluation.hpp"
#include "runtime/train/pretraining.hpp"
#include "runtime/train/tasks/example_lines.hpp"
#include "runtime/train/tasks/snippet_task.hpp"
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
  command->add_option("--examples", options->examples, "Generated conversations to learn from too")
      ->capture_default_str();
  command->final_callback([options] {
    const size_t bytes = runtime::train_tokenizer(*options);
    std::cerr << "learnt " << options->ranks << " ranks from " << bytes << " bytes of text\n";
  });
}

void print_summary(const runtime::DatasetSummary& summary) {
  std::cerr << "source             documents     tokens     learnt  bytes/token\n";
  for (size_t i = 0; i < summary.size(); ++i) {
    const auto& source = summary[i];
    if (source.documents == 0) continue;
    std::cerr << std::left << std::setw(18) << runtime::kTextSourceNames[i] << std::right
              << std::setw(10) << source.documents << std::setw(11) << source.tokens
              << std::setw(11) << source.learnt << std::setw(13) << std::fixed
              << std::setprecision(2)
              << static_cast<double>(source.bytes) / static_cast<double>(source.tokens) << "\n";
  }
}

// A corpus and the usual conversations, or a task of its own.
void add_material(CLI::App& command, std::string& corpus, std::string& task) {
  auto* material = command.add_option_group("Material", "One of");
  material->require_option(1);
  material->add_option("--corpus", corpus, "Directory that `corpus` wrote");
  material->add_option("--task", task, "Only examples of this task, which needs no corpus")
      ->check(CLI::IsMember({runtime::kSnippetTask}));
}

void add_dataset(CLI::App& app) {
  auto* command = app.add_subcommand(
      "dataset", "Turn a corpus and generated conversations into token ids to train on");
  auto options = std::make_shared<runtime::DatasetOptions>();
  add_material(*command, options->corpus, options->task);
  command->add_option("--tokenizer", options->tokenizer, "Directory that `tokenizer` wrote")
      ->required();
  command->add_option("--out", options->file, "The safetensors file to write")->required();
  command->add_option("--examples", options->examples, "Generated conversations")
      ->capture_default_str();
  auto shares = std::make_shared<std::vector<std::string>>();
  command->add_option("--shares", *shares,
                      "Of the generators of conversations: tools=40 copy=20 ...");
  command->add_option("--recalls", options->recalls, "Texts of random tokens that come again")
      ->capture_default_str();
  command->add_option("--recall-length", options->recall_length, "Of such a text, at most")
      ->check(CLI::Range(32, 65536))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of the conversations")->capture_default_str();
  command->add_flag("--held-out", options->held_out,
                    "The held-out documents, and conversations of words that no other has");
  command->final_callback([options, shares] {
    if (!shares->empty()) options->shares = runtime::parse_example_shares(*shares);
    print_summary(runtime::build_dataset(*options));
  });
}

struct ExamplesOptions {
  std::string corpus, source;
  runtime::ExampleOptions examples;
  uint32_t count = 10;
};

void add_examples(CLI::App& app) {
  auto* command = app.add_subcommand(
      "examples", "Print generated conversations: requests for the server, with the right answers");
  auto options = std::make_shared<ExamplesOptions>();
  command->add_option("--corpus", options->corpus, "Directory that `corpus` wrote")->required();
  command->add_option("--count", options->count, "How many")->capture_default_str();
  command->add_option("--seed", options->examples.seed, "As for `dataset`")->capture_default_str();
  command->add_flag("--held-out", options->examples.held_out, "As for `dataset`");
  std::vector<std::string> generators;
  for (const std::string_view name : runtime::kTextSourceNames)
    if (runtime::is_conversation(*runtime::find_text_source(name))) generators.emplace_back(name);
  command->add_option("--source", options->source, "One generator alone")
      ->check(CLI::IsMember(generators));
  command->add_option("--lookup-bytes", options->examples.lookup_bytes,
                      "Length of the texts to look something up in; 0: various");
  command->final_callback([options] {
    const auto documents = runtime::read_corpus_file(
        runtime::corpus_file(options->corpus, options->examples.held_out));
    options->examples.documents = &documents;
    options->examples.source = runtime::find_text_source(options->source);
    for (uint32_t i = 0; i < options->count; ++i)
      runtime::write_example_line(runtime::make_example(options->examples, i), std::cout);
  });
}

// The files of a run.
struct RunFiles {
  std::string dataset, held_out;
};

void add_run_files(CLI::App& command, RunFiles& files, runtime::RunOptions& options) {
  command.fallthrough();  // --config belongs to the program: its section is the command's name
  command.add_option("--dataset", files.dataset, "File that `dataset` wrote")->required();
  command.add_option("--held-out", files.held_out, "Another, to measure the loss on");
  command.add_option("--out", options.directory, "Directory of the run")->required();
}

// Calls run(documents, held-out documents or null).
template <class Run>
auto with_documents(const RunFiles& files, const Run& run) {
  const runtime::DatasetDocuments documents(files.dataset);
  std::unique_ptr<runtime::DatasetDocuments> held_out;
  if (!files.held_out.empty())
    held_out = std::make_unique<runtime::DatasetDocuments>(files.held_out);
  return run(documents, held_out.get());
}

void print_result(const runtime::RunResult& result, const std::string& written) {
  std::cerr << "\n" << result.steps << " steps, " << result.tokens << " tokens, loss "
            << result.loss << ", " << result.skipped << " steps skipped, "
            << result.tokens_per_core_second << " tokens per core-second; " << written << "\n";
}

void add_run_settings(CLI::App& command, runtime::RunOptions& options) {
  auto& trainer = options.trainer;
  auto& rate = trainer.learning_rate;
  command.add_option("--seed", options.seed, "Of the first weights and of the batches")
      ->capture_default_str();
  command.add_option("--steps", rate.steps, "Of the whole run")->capture_default_str();
  command.add_option("--stop-after", options.stop_after, "Steps of this call; 0: to the end")
      ->capture_default_str();
  command.add_option("--rate", rate.rate, "Highest learning rate")->capture_default_str();
  command.add_option("--last-share", rate.last_share, "Of the rate, at the last step")
      ->capture_default_str();
  command.add_option("--warmup", rate.warmup_steps, "Steps")->capture_default_str();
  command.add_option("--weight-decay", trainer.weight_decay, "Of matrices")->capture_default_str();
  command.add_option("--clip", trainer.clip, "Largest norm of the gradient")
      ->capture_default_str();
  command.add_option("--shards", trainer.shards, "Of a batch; part of the result")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command.add_option("--rows", trainer.rows, "Tokens of a shard")
      ->check(CLI::Range(16, 65536))
      ->capture_default_str();
  command.add_option("--threads", trainer.threads, "Change nothing but the time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command.add_option("--sequence-length", options.batch.sequence_length, "Longest sequence")
      ->check(CLI::Range(8, 65536))
      ->capture_default_str();
  command.add_option("--example-share", options.batch.example_share,
                     "Of the tokens: generated examples, the rest is text")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command.add_option("--context-weight", options.batch.context_weight,
                     "Of an example's tokens that the assistant did not produce, in the loss")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command.add_option("--checkpoint-every", options.checkpoint_every, "Steps")
      ->capture_default_str();
  command.add_option("--evaluate-every", options.evaluate_every, "Steps")->capture_default_str();
}

void add_pretrain(CLI::App& app) {
  auto* command = app.add_subcommand("pretrain", "Train a model, or go on where a run stopped");
  auto options = std::make_shared<runtime::PretrainingOptions>();
  auto files = std::make_shared<RunFiles>();
  command->add_option("--preset", options->preset, "Geometry of the model")->required();
  add_run_files(*command, *files, *options);
  command->add_option("--tokenizer", options->tokenizer,
                      "Directory whose tokenizer goes into the model");
  command->add_option("--initial", options->initial, "Model to start from");
  const std::map<std::string, runtime::ParameterStart> starts{
      {"noise", runtime::ParameterStart::kNoise}, {"look-up", runtime::ParameterStart::kLookUp}};
  command
      ->add_option("--start", options->start,
                   "Without a model to start from: noise, or look-up, whose attention repeats what "
                   "followed the last time")
      ->transform(CLI::CheckedTransformer(starts));
  command
      ->add_option("--balance-rate", options->trainer.balance_rate,
                   "Of the router's biases, a step")
      ->capture_default_str();
  command->add_flag("--mxfp4", options->quantised, "Routed experts are seen as MXFP4");
  add_run_settings(*command, *options);
  command->final_callback([options, files] {
    const auto result = with_documents(*files, [&](const auto& documents, const auto* held_out) {
      return runtime::pretrain(*options, documents, held_out, std::cerr);
    });
    print_result(result, "model in " + options->directory + "/model");
  });
}

void add_lora(CLI::App& app) {
  auto* command = app.add_subcommand(
      "lora", "Train an adapter beside a frozen model, or go on where a run stopped");
  auto options = std::make_shared<runtime::AdapterTrainingOptions>();
  auto files = std::make_shared<RunFiles>();
  command->add_option("--model", options->model, "Directory of the base")->required();
  add_run_files(*command, *files, *options);
  command->add_option("--rank", options->adapter.rank, "Of every factor pair")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--alpha", options->adapter.alpha, "The scale is alpha / rank")
      ->capture_default_str();
  command
      ->add_option("--targets", options->adapter.targets,
                   "Modules that are adapted; all that there are, unless named")
      ->delimiter(',')
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(runtime::kAdapterTargets),
                                                     std::end(runtime::kAdapterTargets))));
  add_run_settings(*command, *options);
  command->final_callback([options, files] {
    const auto result = with_documents(*files, [&](const auto& documents, const auto* held_out) {
      return runtime::train_adapter(*options, documents, held_out, std::cerr);
    });
    print_result(result, std::to_string(result.parameters) + " parameters in " +
                             options->directory + "/adapter");
    std::fprintf(stderr, "base %s: digest %016llx before, %016llx after\n",
                 options->model.c_str(), static_cast<unsigned long long>(result.base_before),
                 static_cast<unsigned long long>(result.base_after));
  });
}

void print_score(std::string_view name, const runtime::SourceScore& score) {
  if (score.bytes != 0) {
    std::printf("%-18.*s %8zu tokens  %.3f bits per byte  %.3f nats per token\n",
                static_cast<int>(name.size()), name.data(), static_cast<size_t>(score.tokens),
                score.bits_per_byte(), score.nats / static_cast<double>(score.tokens));
  }
  if (score.tasks != 0) {
    std::printf("%-18.*s %8u tasks   %5.1f %% well formed  %5.1f %% right\n",
                static_cast<int>(name.size()), name.data(), score.tasks,
                100.0 * score.well_formed / score.tasks, 100.0 * score.right / score.tasks);
  }
}

void add_evaluate(CLI::App& app) {
  auto* command = app.add_subcommand(
      "evaluate", "Bits per byte of held-out text, and answers to held-out tasks");
  auto options = std::make_shared<runtime::EvaluationOptions>();
  command->add_option("--model", options->model, "Directory of the model")->required();
  add_material(*command, options->corpus, options->task);
  command->add_option("--adapter", options->adapter, "Directory that `lora` wrote, for this model");
  command->add_option("--tasks", options->tasks, "Generated tasks to answer")
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of the tasks")->capture_default_str();
  command->add_option("--text-tokens", options->text_tokens, "Read at most, of each package")
      ->capture_default_str();
  command->add_option("--context", options->context, "Tokens that documents are cut into")
      ->check(CLI::Range(16, 65536))
      ->capture_default_str();
  command->add_option("--answer-tokens", options->answer_tokens, "Of one answer, at most")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--threads", options->threads)
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->final_callback([options] {
    const auto scores = runtime::evaluate_model(
        *options, [](const std::string& text) { std::cerr << "\r" << text << "    "; });
    std::cerr << "\n";
    for (size_t i = 0; i < scores.size(); ++i) print_score(runtime::kTextSourceNames[i], scores[i]);
    print_score("all text", runtime::total(scores, false));
    print_score("all tasks", runtime::total(scores, true));
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Makes models for sluice-serve, and what they learn from."};
  app.require_subcommand(1);
  app.set_config("--config", "", "TOML file; flags win over it");
  add_init(app);
  add_corpus(app);
  add_tokenizer(app);
  add_dataset(app);
  add_examples(app);
  add_pretrain(app);
  add_lora(app);
  add_evaluate(app);
  return apps::run_program(app, "sluice-train", argc, argv);
}
