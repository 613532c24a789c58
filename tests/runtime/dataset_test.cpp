// Datasets: what is written is read back in place, and a file that is not one is refused.
#include "runtime/train/dataset.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/safetensors_writer.hpp"
#include "runtime/tokenizer.hpp"
#include "runtime/train/corpus_files.hpp"
#include "runtime/train/dataset_builder.hpp"
#include "runtime/train/tokenizer_trainer.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

using runtime::TextSource;

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("Documents of a dataset come back as they were added", "[runtime][train]") {
  const support::TemporaryDirectory directory;
  runtime::DatasetWriter writer;
  writer.add(std::vector<uint16_t>{5, 6, 65535}, std::vector<uint8_t>{1, 1, 0}, TextSource::kTools);
  writer.add(std::vector<uint16_t>{7}, std::vector<uint8_t>{0}, TextSource::kJargon);
  writer.write(directory.file("set"));
  const runtime::Dataset dataset(directory.file("set"));
  REQUIRE(dataset.size() == 2);
  CHECK(dataset.tokens() == 4);
  const auto first = dataset.document(0), second = dataset.document(1);
  CHECK(std::vector(first.tokens.begin(), first.tokens.end()) ==
        std::vector<uint16_t>{5, 6, 65535});
  CHECK(std::vector(first.mask.begin(), first.mask.end()) == std::vector<uint8_t>{0, 1, 0});
  CHECK(first.source == TextSource::kTools);
  CHECK(second.tokens.front() == 7);
  CHECK(second.source == TextSource::kJargon);
}

TEST_CASE("A dataset of text and examples holds the text whole and masks what is asked",
          "[runtime][train]") {
  const support::TemporaryDirectory directory;
  const std::string text = "The door is open. The door is shut. 12 doors are open, 340 are shut.\n";
  runtime::write_corpus_file(runtime::corpus_file(directory.path(), false),
                             {{"python3.11-doc", "/a", text}, {"dict-jargon", "/b", "jargon"}});
  runtime::TokenizerOptions tokenizer_options;
  tokenizer_options.corpus = directory.path();
  tokenizer_options.directory = directory.file("tokenizer");
  tokenizer_options.ranks = 400;
  tokenizer_options.examples = 20;
  runtime::train_tokenizer(tokenizer_options);
  const auto tokenizer = runtime::Tokenizer::load(tokenizer_options.directory);
  runtime::DatasetOptions options;
  options.corpus = directory.path();
  options.tokenizer = tokenizer_options.directory;
  options.file = directory.file("set");
  options.examples = 30;
  const auto summary = runtime::build_dataset(options);

  const runtime::Dataset dataset(options.file);
  REQUIRE(dataset.size() == 32);
  const auto document = dataset.document(0);
  std::string back;
  for (const uint16_t id : document.tokens) back += tokenizer->bytes(id);
  CHECK(back == text + "[EOS]");
  CHECK(std::count(document.mask.begin(), document.mask.end(), 1) ==
        static_cast<std::ptrdiff_t>(document.tokens.size()) - 1);
  CHECK(document.source == TextSource::kPython);
  CHECK(dataset.document(1).source == TextSource::kJargon);
  size_t tokens = 0;
  for (const auto& source : summary) tokens += source.tokens;
  CHECK(tokens == dataset.tokens());
  const auto example = dataset.document(2);
  CHECK(example.tokens.front() == tokenizer->special("<|open|>"));
  CHECK(example.tokens.back() == tokenizer->special("<|end_of_msg|>"));
  CHECK(example.mask.back() == 1);
  CHECK(std::count(example.mask.begin(), example.mask.end(), 0) > 10);

  const std::string first = bytes_of(options.file);
  runtime::build_dataset(options);
  CHECK(bytes_of(options.file) == first);
}

TEST_CASE("A file that is no dataset is refused with the tensor's name", "[runtime][train]") {
  const support::TemporaryDirectory directory;
  const auto write = [&](std::vector<int64_t> ends, std::string dtype) {
    runtime::SafeTensorsWriter writer;
    writer.add("ends", "I64", {ends.size()}, [ends](std::span<std::byte> data) {
      std::copy_n(reinterpret_cast<const std::byte*>(ends.data()), data.size(), data.begin());
    });
    const auto zero = [](std::span<std::byte> data) {
      std::fill(data.begin(), data.end(), std::byte{});
    };
    writer.add("tokens", std::move(dtype), {4}, zero);
    writer.add("mask", "U8", {4}, zero);
    writer.add("source", "U8", {ends.size()}, zero);
    writer.write(directory.file("set"));
  };
  const auto open = [&] { return runtime::Dataset(directory.file("set")).size(); };
  write({2, 4}, "U16");
  CHECK(open() == 2);
  write({2, 4}, "BF16");
  CHECK_THROWS_WITH(open(), Catch::Contains("tensor tokens: is BF16 [4]"));
  write({2, 2}, "U16");
  CHECK_THROWS_WITH(open(), Catch::Contains("ends[1] is 2"));
  write({2, 5}, "U16");
  CHECK_THROWS_WITH(open(), Catch::Contains("ends[1] is 5"));
  write({2}, "U16");
  CHECK_THROWS_WITH(open(), Catch::Contains("tokens go on"));
}
