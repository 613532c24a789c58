#include "actors/model_loading.hpp"

#include <string>

#include "memory/checksum.hpp"
#include "runtime/mapped_file.hpp"
#include "runtime/model_config.hpp"
#include "runtime/model_costs.hpp"
#include "runtime/weights.hpp"

namespace actors {
namespace {

constexpr uint32_t kNullVocabulary = 512;  // of a null model that has no config.json

LoadedModel load_hybrid(const std::string& directory, kernels::Ops& ops,
                        const runtime::ModelOptions& options) {
  const auto config = runtime::ModelConfig::load(directory);
  LoadedModel loaded;
  // The model copies what it keeps: the files are unmapped here.
  const auto weights = runtime::WeightsFile::load(directory);
  loaded.model = runtime::load_hybrid_model(config, weights, ops, options);
  loaded.digest =
      memory::checksum(runtime::MappedFile(directory + "/config.json").bytes(), weights.digest());
  loaded.tokenizer = runtime::Tokenizer::load(directory);
  loaded.max_positions = config.max_positions;
  loaded.end_ids = config.end_ids;
  const runtime::ModelCosts costs(config, runtime::weight_types(config, weights),
                                  options.kv_dtype);
  loaded.flops_per_token =
      2 * static_cast<double>(costs.active_params()) + static_cast<double>(costs.recurrence_flops);
  loaded.flops_per_token_pair = static_cast<double>(costs.absorbed_flops);
  return loaded;
}

LoadedModel load_null(const std::string& directory, const runtime::ModelOptions& options) {
  LoadedModel loaded;
  uint32_t vocab = kNullVocabulary;
  if (!directory.empty()) {
    const auto config = runtime::ModelConfig::load(directory);
    vocab = config.vocab;
    loaded.tokenizer = runtime::Tokenizer::load(directory);
    loaded.max_positions = config.max_positions;
    loaded.end_ids = config.end_ids;
  }
  loaded.model = runtime::make_null_model(vocab, options);
  return loaded;
}

}  // namespace

ModelFactory model_factory(const runtime::EngineConfig& config) {
  if (config.device == "null") {
    return [directory = config.model](kernels::Ops&, const runtime::ModelOptions& options) {
      return load_null(directory, options);
    };
  }
  return [directory = config.model](kernels::Ops& ops, const runtime::ModelOptions& options) {
    return load_hybrid(directory, ops, options);
  };
}

}  // namespace actors
