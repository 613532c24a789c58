// The task that an adapter is trained on: what is held out is really unseen, and a dataset and an
// evaluation may be of it alone.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <sstream>
#include <string>

#include "runtime/adapter/adapter.hpp"
#include "runtime/model_config.hpp"
#include "runtime/train/dataset.hpp"
#include "runtime/train/dataset_builder.hpp"
#include "runtime/train/evaluation.hpp"
#include "runtime/train/tasks/snippet_task.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

std::string text_of(const runtime::Example& example) {
  return example.prompt.messages.back().content;
}

}  // namespace

TEST_CASE("Held-out snippets share no line and no question with the others",
          "[runtime][train]") {
  std::set<std::string> lines[2], answers;
  for (uint64_t i = 0; i < 1500; ++i) {
    for (const bool held_out : {false, true}) {
      const auto example = runtime::make_snippet_example(1, held_out, i);
      CHECK(text_of(example) == text_of(runtime::make_snippet_example(1, held_out, i)));
      CHECK(example.answer.content == example.expected.contains + ".");
      answers.insert(example.expected.contains);
      std::istringstream in(text_of(example));
      for (std::string line; std::getline(in, line);)
        if (!line.empty()) lines[held_out].insert(line);
    }
  }
  CHECK(answers.size() == 8);
  std::set<std::string> shared;
  std::set_intersection(lines[0].begin(), lines[0].end(), lines[1].begin(), lines[1].end(),
                        std::inserter(shared, shared.begin()));
  CHECK(shared.empty());
  CHECK(lines[1].size() > 500);
}

TEST_CASE("A dataset and an evaluation may be of one task, with and without an adapter",
          "[runtime][train]") {
  const std::string model = support::random_model("tiny-k3");
  const support::TemporaryDirectory directory;
  runtime::DatasetOptions dataset;
  dataset.tokenizer = model;
  dataset.task = runtime::kSnippetTask;
  dataset.file = directory.path() + "/snippets.safetensors";
  dataset.examples = 20;
  runtime::build_dataset(dataset);
  const runtime::Dataset written(dataset.file);
  CHECK(written.size() == 20);
  CHECK(written.document(3).source == runtime::TextSource::kChat);

  runtime::EvaluationOptions options;
  options.model = model;
  options.task = runtime::kSnippetTask;
  options.tasks = 6;
  options.answer_tokens = 4;
  const auto quiet = [](const std::string&) {};
  const auto alone = runtime::total(runtime::evaluate_model(options, quiet), true);
  CHECK(alone.tasks == 6);
  CHECK(alone.right == 0);  // a random model
  const auto config = runtime::ModelConfig::load(model);
  runtime::Adapter adapter(config, {.rank = 2});
  runtime::save_adapter(directory.path() + "/adapter", adapter, {model, "language_model."});
  options.adapter = directory.path() + "/adapter";
  CHECK(runtime::total(runtime::evaluate_model(options, quiet), true).tasks == 6);
  options.adapter += "-missing";
  CHECK_THROWS_WITH(runtime::evaluate_model(options, quiet),
                    Catch::Matchers::Contains("adapter-missing/adapter_config.json"));
}
