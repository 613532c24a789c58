// A preset's model from weights written for the occasion, made once per page size and thread count
// and lent to many engines.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "runtime/checkpoint_writer.hpp"
#include "runtime/model.hpp"
#include "runtime/model_config.hpp"
#include "runtime/weights.hpp"
#include "tests/support/core_server.hpp"

namespace support {

class RealModels {
 public:
  RealModels(const std::string& preset, uint64_t seed)
      : directory_(std::filesystem::temp_directory_path() /
                   ("sluice-" + preset + "-" + std::to_string(::getpid()))) {
    runtime::write_checkpoint({preset, directory_.string(), seed});
    config_ =
        std::make_unique<runtime::ModelConfig>(runtime::ModelConfig::load(directory_.string()));
    weights_ =
        std::make_unique<runtime::WeightsFile>(runtime::WeightsFile::load(directory_.string()));
  }
  ~RealModels() { std::filesystem::remove_all(directory_); }
  RealModels(const RealModels&) = delete;
  RealModels& operator=(const RealModels&) = delete;

  uint32_t vocab() const { return config_->vocab; }
  ModelMaker maker(unsigned threads) {
    return [this, threads](uint32_t page_tokens) {
      auto& model = models_[{threads, page_tokens}];
      if (!ops_[threads]) ops_[threads] = kernels::make_cpu_ops(threads);
      if (!model) {
        runtime::ModelOptions options;
        options.page_tokens = page_tokens;
        model = runtime::load_hybrid_model(*config_, *weights_, *ops_[threads], options);
      }
      return std::make_unique<Borrowed>(*model);
    };
  }

 private:
  class Borrowed final : public runtime::Model {
   public:
    explicit Borrowed(runtime::Model& model) : model_(model) {}
    uint32_t vocab_size() const override { return model_.vocab_size(); }
    runtime::CacheGeometry geometry() const override { return model_.geometry(); }
    uint64_t weight_bytes() const override { return model_.weight_bytes(); }
    void forward(const runtime::ForwardBatch& batch, const runtime::CacheMemory& memory) override {
      model_.forward(batch, memory);
    }
    void logits(size_t first, size_t count, float* out) override {
      model_.logits(first, count, out);
    }

   private:
    runtime::Model& model_;
  };

  std::filesystem::path directory_;
  std::unique_ptr<runtime::ModelConfig> config_;
  std::unique_ptr<runtime::WeightsFile> weights_;
  std::map<unsigned, std::unique_ptr<kernels::Ops>> ops_;
  std::map<std::pair<unsigned, uint32_t>, std::unique_ptr<runtime::Model>> models_;
};

}  // namespace support
