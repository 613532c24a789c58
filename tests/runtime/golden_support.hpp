// Runs a model outside the engine: owns the cache memory of a few sequences and feeds pieces of
// them to the forward.
#pragma once

#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kernels/ops.hpp"
#include "runtime/hybrid_model.hpp"
#include "runtime/model_config.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/weights.hpp"

namespace golden {

using Tokens = std::vector<runtime::TokenId>;
using Logits = std::vector<float>;  // [rows, vocab]

// A stretch of one sequence's tokens, to be run at `position`.
struct Piece {
  uint32_t sequence = 0;
  uint32_t position = 0;
  Tokens tokens;
};

class Runner {
 public:
  static constexpr uint32_t kMaxTokens = 512;  // per sequence

  Runner(const std::string& directory, unsigned threads, runtime::ModelOptions options = {},
         uint32_t sequences = 1)
      : config(runtime::ModelConfig::load(directory)),
        ops_(kernels::make_cpu_ops(threads)),
        options_(options) {
    options_.max_rows = 256;
    model_ =
        runtime::load_hybrid_model(config, runtime::WeightsFile::load(directory), *ops_, options_);
    pages_each_ = kMaxTokens / options_.page_tokens;
    const auto geometry = model_->geometry();
    states_.resize(geometry.state_bytes * sequences + 64);
    pages_.resize(geometry.page_bytes * sequences * pages_each_ + 64);
    memory_ = {align(states_), geometry.state_bytes, align(pages_), geometry.page_bytes};
    // A sequence's pages lie scattered, as in a server.
    page_table_.resize(size_t{sequences} * pages_each_);
    std::iota(page_table_.begin(), page_table_.end(), 0u);
    std::shuffle(page_table_.begin(), page_table_.end(), std::mt19937(7));
  }

  runtime::Model& model() { return *model_; }
  std::byte* state(uint32_t sequence) const {
    return memory_.state_base + sequence * memory_.state_stride;
  }
  std::byte* page(uint32_t sequence, uint32_t index) const {
    return memory_.page_base + page_table_[sequence * pages_each_ + index] * memory_.page_stride;
  }
  void clear(uint32_t sequence) { std::memset(state(sequence), 0, memory_.state_stride); }

  // The logits of all rows in the order of the pieces, or of the wanted batch rows only.
  Logits run(const std::vector<Piece>& pieces,
             std::optional<std::vector<uint32_t>> only = std::nullopt) {
    Tokens tokens;
    std::vector<kernels::Segment> segments;
    for (const Piece& piece : pieces) {
      segments.push_back({static_cast<uint32_t>(tokens.size()),
                          static_cast<uint32_t>(piece.tokens.size()), piece.position,
                          piece.sequence, piece.sequence * pages_each_});
      tokens.insert(tokens.end(), piece.tokens.begin(), piece.tokens.end());
    }
    std::vector<uint32_t> wanted(tokens.size());
    std::iota(wanted.begin(), wanted.end(), 0u);
    if (only) wanted = *only;
    Logits logits(wanted.size() * config.vocab);
    const kernels::BatchView view{segments, page_table_, static_cast<uint32_t>(tokens.size())};
    model_->forward({tokens, view, wanted}, memory_);
    model_->logits(0, wanted.size(), logits.data());
    return logits;
  }

  // A whole sequence from the start, cut at these sizes (the last size repeats).
  Logits prefill(const Tokens& tokens, const std::vector<uint32_t>& cuts, uint32_t sequence = 0) {
    clear(sequence);
    Logits all;
    uint32_t position = 0;
    for (size_t i = 0; position < tokens.size(); ++i) {
      const uint32_t left = static_cast<uint32_t>(tokens.size()) - position;
      const uint32_t count = std::min(left, cuts[std::min(i, cuts.size() - 1)]);
      const Logits part = run(
          {{sequence, position, {tokens.begin() + position, tokens.begin() + position + count}}});
      all.insert(all.end(), part.begin(), part.end());
      position += count;
    }
    return all;
  }

  const runtime::ModelConfig config;

 private:
  static std::byte* align(std::vector<std::byte>& bytes) {
    const auto address = reinterpret_cast<uintptr_t>(bytes.data());
    return bytes.data() + ((address + 63) / 64 * 64 - address);
  }

  std::unique_ptr<kernels::Ops> ops_;
  runtime::ModelOptions options_;
  std::unique_ptr<runtime::Model> model_;
  uint32_t pages_each_ = 0;
  std::vector<std::byte> states_, pages_;
  runtime::CacheMemory memory_;
  std::vector<uint32_t> page_table_;
};

inline bool same_bytes(const Logits& a, const Logits& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

template <class T>
std::vector<T> values(const runtime::SafeTensorsFile& file, const std::string& name) {
  const auto* tensor = file.find(name);
  if (tensor == nullptr) throw std::runtime_error(file.path() + ": no tensor " + name);
  std::vector<T> out(tensor->data.size() / sizeof(T));
  std::memcpy(out.data(), tensor->data.data(), out.size() * sizeof(T));
  return out;
}

}  // namespace golden
