// The forward pass against a float64 reference model (tests/data/README.md), and against itself:
// the same bytes however a prompt is cut, whoever shares the batch, and however many threads run.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "golden_support.hpp"
#include "weights_support.hpp"

using golden::Logits;
using golden::Runner;
using golden::same_bytes;
using golden::Tokens;
using golden::values;

namespace {

constexpr double kLogitBound = 2e-4;  // absolute, logits of standard deviation 1.5
constexpr double kLogprobBound = 3e-4;
constexpr double kStateBound = 1e-4;
constexpr double kLossyBound = 0.03;  // --kv-dtype bf16; measured 0.016

std::string data(const std::string& name) {
  return std::string(SLUICE_SOURCE_DIR) + "/tests/data/" + name;
}

std::vector<std::string> cases(const runtime::SafeTensorsFile& file) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : file.tensors()) {
    if (name.starts_with("len") && name.ends_with(".tokens"))
      names.push_back(name.substr(0, name.find('.')));
  }
  return names;
}

double log_sum_exp(const float* logits, size_t count) {
  const double top = *std::max_element(logits, logits + count);
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += std::exp(logits[i] - top);
  return top + std::log(sum);
}

struct Errors {
  double logit = 0, logprob = 0;
};

// Largest differences over `rows` rows.
Errors compare(const float* found, const float* expected, size_t rows, size_t vocab) {
  Errors errors;
  for (size_t row = 0; row < rows; ++row, found += vocab, expected += vocab) {
    const double shift = log_sum_exp(found, vocab) - log_sum_exp(expected, vocab);
    for (size_t i = 0; i < vocab; ++i) {
      const double difference = static_cast<double>(found[i]) - static_cast<double>(expected[i]);
      if (!std::isfinite(difference)) return {INFINITY, INFINITY};
      errors.logit = std::max(errors.logit, std::fabs(difference));
      errors.logprob = std::max(errors.logprob, std::fabs(difference - shift));
    }
  }
  return errors;
}

void check_greedy(Runner& runner, const runtime::SafeTensorsFile& file, const std::string& name,
                  const Logits& logits, uint32_t position) {
  const auto ids = values<int32_t>(file, name + ".greedy");
  const auto margins = values<float>(file, name + ".greedy_margin");
  const size_t vocab = runner.config.vocab;
  Logits last(logits.end() - static_cast<ptrdiff_t>(vocab), logits.end());
  for (size_t step = 0; step < ids.size(); ++step) {
    CAPTURE(step);
    const auto chosen = std::max_element(last.begin(), last.end()) - last.begin();
    if (margins[step] > kLogitBound) REQUIRE(chosen == ids[step]);
    if (step + 1 < ids.size()) last = runner.run({{0, position++, {ids[step]}}});
  }
}

void check_directory(const std::string& directory) {
  INFO(directory);
  const runtime::SafeTensorsFile file(directory + "/golden.safetensors");
  Runner runner(directory, 2);
  const size_t vocab = runner.config.vocab;
  Errors worst;
  for (const std::string& name : cases(file)) {
    INFO(name);
    const Tokens tokens = values<int32_t>(file, name + ".tokens");
    const auto positions = values<int32_t>(file, name + ".positions");
    const auto expected = values<float>(file, name + ".logits");
    const Logits logits = runner.prefill(tokens, {256});
    for (size_t i = 0; i < positions.size(); ++i) {
      const auto at = static_cast<size_t>(positions[i]) * vocab;
      const Errors errors = compare(logits.data() + at, expected.data() + i * vocab, 1, vocab);
      worst.logit = std::max(worst.logit, errors.logit);
      worst.logprob = std::max(worst.logprob, errors.logprob);
    }
    check_greedy(runner, file, name, logits, static_cast<uint32_t>(tokens.size()));
    CHECK(same_bytes(logits, runner.prefill(tokens, {1})));
    CHECK(same_bytes(logits, runner.prefill(tokens, {64})));
    CHECK(same_bytes(logits, runner.prefill(tokens, {7, 57, 3})));
  }
  CHECK(worst.logit <= kLogitBound);
  CHECK(worst.logprob <= kLogprobBound);
}

// Where one value of a KDA state lies: [heads, d/32, d, 32].
size_t tiled(size_t head, size_t key, size_t value, size_t d) {
  return ((head * (d / 32) + value / 32) * d + key) * 32 + value % 32;
}

double worst_kda_state(const Runner& runner, const runtime::SafeTensorsFile& file,
                       const std::string& prefix, const runtime::StateLayout::Kda& place) {
  const size_t heads = runner.config.kda.heads, d = runner.config.kda.d;
  const auto state = values<float>(file, prefix + ".S");  // [heads, key, value]
  const auto conv = values<float>(file, prefix + ".conv");
  const auto* found = reinterpret_cast<const float*>(runner.state(0) + place.recurrent);
  const auto* found_conv = reinterpret_cast<const float*>(runner.state(0) + place.conv);
  double worst = 0;
  for (size_t i = 0; i < state.size(); ++i) {
    const float value = found[tiled(i / (d * d), i / d % d, i % d, d)];
    worst = std::max(worst, std::fabs(static_cast<double>(value) - static_cast<double>(state[i])));
  }
  REQUIRE(state.size() == heads * d * d);
  for (size_t i = 0; i < conv.size(); ++i) {
    worst = std::max(worst,
                     std::fabs(static_cast<double>(found_conv[i]) - static_cast<double>(conv[i])));
  }
  return worst;
}

double worst_mla_rows(const Runner& runner, const runtime::SafeTensorsFile& file,
                      const std::string& prefix, uint64_t offset) {
  const auto rows = values<float>(file, prefix + ".rows");
  const size_t width = runner.config.mla.kv_lora + runner.config.mla.d_rope;
  double worst = 0;
  for (size_t row = 0; row * width < rows.size(); ++row) {
    const auto* page = runner.page(0, static_cast<uint32_t>(row / 64)) + offset;
    const auto* found = reinterpret_cast<const float*>(page) + row % 64 * width;
    for (size_t i = 0; i < width; ++i) {
      worst = std::max(worst, std::fabs(static_cast<double>(found[i]) -
                                        static_cast<double>(rows[row * width + i])));
    }
  }
  return worst;
}

// The reference model, if this machine has it and a Python with numpy; else empty.
std::string oracle_command() {
  const char* set = std::getenv("SLUICE_ORACLE");
  const std::string oracle =
      set != nullptr ? set : std::string(SLUICE_SOURCE_DIR) + "/../shared/oracle";
  if (!std::filesystem::exists(oracle + "/k3_oracle.py")) return {};
  for (const char* python : {"python3", "/opt/venv/bin/python"}) {
    if (std::system((std::string(python) + " -c 'import numpy' 2>/dev/null").c_str()) != 0)
      continue;
    return "SLUICE_ORACLE='" + oracle + "' " + python + " '" + data("make_golden.py") + "' ";
  }
  return {};
}

}  // namespace

TEST_CASE("Logits and greedy continuations agree with the float64 reference", "[runtime][golden]") {
  check_directory(data(GENERATE("golden-k3", "golden-linear")));
}

TEST_CASE("Recurrent states, convolution windows and latent rows agree with the reference",
          "[runtime][golden]") {
  const std::string directory = data(GENERATE("golden-k3", "golden-linear"));
  const uint32_t count = GENERATE(64u, 128u);
  CAPTURE(directory, count);
  const runtime::SafeTensorsFile file(directory + "/golden.safetensors");
  Runner runner(directory, 1);
  const runtime::StateLayout layout(runner.config, 64, kernels::DType::kF32);
  Tokens tokens = values<int32_t>(file, "len200.tokens");
  tokens.resize(count);
  runner.prefill(tokens, {50});
  for (uint32_t layer = 0; layer < runner.config.layer_count(); ++layer) {
    CAPTURE(layer);
    const std::string prefix = "state." + std::to_string(count);
    if (runner.config.layers[layer] == runtime::LayerKind::kKda) {
      CHECK(worst_kda_state(runner, file, prefix + ".kda." + std::to_string(layer),
                            layout.kda[layer]) < kStateBound);
    } else {
      CHECK(worst_mla_rows(runner, file, prefix + ".mla." + std::to_string(layer),
                           layout.mla[layer]) < kStateBound);
    }
  }
}

TEST_CASE("A sequence's logits have the same bytes however it is cut, shared and threaded",
          "[runtime][golden][property]") {
  const std::string directory = data(GENERATE("golden-k3", "golden-linear"));
  const auto seed = GENERATE(range(0u, 4u));
  CAPTURE(directory, seed);
  constexpr uint32_t kSequences = 5;
  std::mt19937 random(seed);
  runtime::ModelOptions small_pages;
  small_pages.page_tokens = seed % 2 == 0 ? 16 : 128;
  Runner alone(directory, 1), together(directory, 2, small_pages, kSequences);

  std::vector<Tokens> sequences(kSequences);
  std::vector<Logits> expected, found(kSequences);
  for (Tokens& tokens : sequences) {
    tokens.resize(1 + random() % 150);
    for (auto& id : tokens) id = static_cast<int32_t>(random() % alone.config.vocab);
    expected.push_back(alone.prefill(tokens, {256}));
  }
  for (uint32_t s = 0; s < kSequences; ++s) together.clear(s);
  std::vector<uint32_t> done(kSequences, 0);
  const size_t vocab = alone.config.vocab;
  for (bool more = true; more;) {
    std::vector<golden::Piece> pieces;
    for (uint32_t s = 0; s < kSequences; ++s) {
      const uint32_t left = static_cast<uint32_t>(sequences[s].size()) - done[s];
      const uint32_t count =
          std::min<uint32_t>(left, static_cast<uint32_t>(random() % 3 == 0 ? 1 : random() % 40));
      if (count == 0) continue;
      pieces.push_back(
          {s, done[s], {sequences[s].begin() + done[s], sequences[s].begin() + done[s] + count}});
    }
    std::shuffle(pieces.begin(), pieces.end(), random);
    if (!pieces.empty()) {
      const Logits logits = together.run(pieces);
      size_t row = 0;
      for (const auto& piece : pieces) {
        const auto begin = logits.begin() + static_cast<ptrdiff_t>(row * vocab);
        found[piece.sequence].insert(found[piece.sequence].end(), begin,
                                     begin + static_cast<ptrdiff_t>(piece.tokens.size() * vocab));
        row += piece.tokens.size();
        done[piece.sequence] += static_cast<uint32_t>(piece.tokens.size());
      }
    }
    more = false;
    for (uint32_t s = 0; s < kSequences; ++s) more = more || done[s] < sequences[s].size();
  }
  for (uint32_t s = 0; s < kSequences; ++s) CHECK(same_bytes(expected[s], found[s]));
}

TEST_CASE("Only the wanted rows get logits, and they are those of the full set",
          "[runtime][golden]") {
  const std::string directory = data(GENERATE("golden-k3", "golden-linear"));
  Runner runner(directory, 1);
  const Tokens tokens = {5, 17, 400, 3, 99, 250, 8};
  const Logits all = runner.prefill(tokens, {7});
  const size_t vocab = runner.config.vocab;
  for (const std::vector<uint32_t>& wanted :
       {std::vector<uint32_t>{6}, {0, 1, 4}, {2, 3, 5, 6}, {}}) {
    runner.clear(0);
    const Logits some = runner.run({{0, 0, tokens}}, wanted);
    REQUIRE(some.size() == wanted.size() * vocab);
    for (size_t i = 0; i < wanted.size(); ++i) {
      CHECK(std::equal(some.begin() + static_cast<ptrdiff_t>(i * vocab),
                       some.begin() + static_cast<ptrdiff_t>((i + 1) * vocab),
                       all.begin() + static_cast<ptrdiff_t>(wanted[i] * vocab)));
    }
  }
}

TEST_CASE("KV rows in bf16 are lossy within a small bound and otherwise as exact",
          "[runtime][golden]") {
  const std::string directory = data(GENERATE("golden-k3", "golden-linear"));
  CAPTURE(directory);
  runtime::ModelOptions lossy;
  lossy.kv_dtype = kernels::DType::kBF16;
  Runner exact(directory, 1), rounded(directory, 2, lossy);
  Tokens tokens(150);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * i % 512);
  const Logits expected = exact.prefill(tokens, {256}), found = rounded.prefill(tokens, {256});
  const double error = compare(found.data(), expected.data(), tokens.size(), 512).logit;
  CHECK(error > 0);
  CHECK(error < kLossyBound);
  CHECK(same_bytes(found, rounded.prefill(tokens, {13})));
}

TEST_CASE("Tied embeddings give the bytes of a head that repeats the table", "[runtime][golden]") {
  const damage::TemporaryDirectory untied(data("golden-linear")), tied(data("golden-linear"));
  auto weights = damage::read_header(untied.file("model.safetensors"));
  const auto place = [&](const char* name) {
    return weights.object[name].at("data_offsets").at(0).to_number<size_t>();
  };
  const size_t bytes = 512 * 64 * 2;
  weights.data.replace(place("lm_head.weight"), bytes,
                       weights.data.substr(place("model.embed_tokens.weight"), bytes));
  damage::write_header(untied.file("model.safetensors"), boost::json::serialize(weights.object),
                       weights.data);
  damage::edit_header(tied.file("model.safetensors"),
                      [](boost::json::object& header) { header.erase("lm_head.weight"); });
  damage::edit_json(tied.file("config.json"),
                    [](boost::json::object& config) { config["tie_word_embeddings"] = true; });
  Runner a(untied.path(), 1), b(tied.path(), 1);
  const Tokens tokens = {1, 2, 300, 4};
  CHECK(same_bytes(a.prefill(tokens, {4}), b.prefill(tokens, {4})));
}

TEST_CASE("Full-size tiny checkpoints made by the reference agree too", "[runtime][golden][slow]") {
  const std::string command = oracle_command();
  if (command.empty()) {
    WARN("skipped: no reference model (SLUICE_ORACLE) or no Python with numpy here");
    return;
  }
  const std::string variant = GENERATE(
      "--preset tiny-k3", "--preset tiny-linear", "--preset tiny-k3 --experts-dtype bf16 --seed 5",
      "--preset tiny-k3 --real-head-dims --seed 3",
      "--preset tiny-linear --real-head-dims --seed 2", "--preset tiny-k3 --all-experts --seed 9");
  INFO(variant);
  const auto directory =
      std::filesystem::temp_directory_path() / ("sluice-golden-" + std::to_string(::getpid()));
  const std::string make =
      command + "'" + directory.string() + "' --quick 1,2,65,130 " + variant + " > /dev/null";
  REQUIRE(std::system(make.c_str()) == 0);
  check_directory(directory.string());
  std::filesystem::remove_all(directory);
}

TEST_CASE("Directories named in SLUICE_GOLDEN agree with their golden.safetensors",
          "[runtime][golden][slow]") {
  const char* list =
      std::getenv("SLUICE_GOLDEN");  // separated by colons; made by the reference model's golden.py
  std::string left = list != nullptr ? list : "";
  while (!left.empty()) {
    const size_t colon = std::min(left.find(':'), left.size());
    check_directory(left.substr(0, colon));
    left.erase(0, colon + 1);
  }
}
