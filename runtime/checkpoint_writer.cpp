#include "runtime/checkpoint_writer.hpp"

#include <boost/json/serialize.hpp>

#include "runtime/checkpoint_presets.hpp"
#include "runtime/model_config.hpp"
#include "runtime/output_files.hpp"
#include "runtime/random_weights.hpp"
#include "runtime/safetensors_writer.hpp"
#include "runtime/tokenizer_files.hpp"

namespace runtime {

void write_checkpoint(const CheckpointOptions& options) {
  const boost::json::object object = preset_config(options.preset);
  const std::string text = boost::json::serialize(object);
  const ModelConfig config = ModelConfig::parse(text, "preset " + options.preset);
  const bool nested = object.contains("text_config");

  make_directory(options.directory);
  write_file(options.directory + "/config.json", text + "\n");

  RandomWeightsOptions random;
  random.seed = options.seed;
  random.prefix = nested ? "language_model." : "";
  random.mxfp4_experts = nested;
  random.readable_head = config.vocab == 512;
  SafeTensorsWriter writer;
  add_random_weights(config, random, writer);
  writer.write(options.directory + "/model.safetensors");
  write_tokenizer_files(options.directory, config.vocab);
}

}  // namespace runtime
