#include "runtime/train/weights_export.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <stdexcept>

#include "runtime/checkpoint_presets.hpp"
#include "runtime/output_files.hpp"
#include "runtime/safetensors_writer.hpp"
#include "runtime/tokenizer.hpp"

namespace runtime {

namespace {

// A text ends with [EOS] and a message with its own token: a model that has learnt both may stop at
// either.
void write_ends(const WeightsExport& target) {
  const auto tokenizer = Tokenizer::load(target.tokenizer);
  if (tokenizer == nullptr)
    throw std::runtime_error(target.tokenizer + "/tiktoken.model: is missing");
  boost::json::array ends;
  for (const char* name : {"[EOS]", "<|end_of_msg|>"}) {
    const auto id = tokenizer->special(name);
    if (!id) {
      throw std::runtime_error(target.tokenizer + "/tokenizer_config.json: names no " +
                               std::string(name) + " token");
    }
    ends.emplace_back(*id);
  }
  write_file(target.directory + "/generation_config.json",
             boost::json::serialize(boost::json::object{{"eos_token_id", ends}}) + "\n");
}

}  // namespace

void export_weights(const WeightsExport& target, const ParameterStore& parameters) {
  namespace fs = std::filesystem;
  boost::json::object config = preset_config(target.preset);
  const bool nested = config.contains("text_config");
  if (nested && !parameters.quantised())
    config["text_config"].as_object().erase("quantization_config");
  std::error_code error;
  make_directory(target.directory);
  write_file(target.directory + "/config.json", boost::json::serialize(config) + "\n");
  SafeTensorsWriter writer;
  parameters.write(nested ? "language_model." : "", writer);
  writer.write(target.directory + "/model.safetensors");
  if (target.tokenizer.empty()) return;
  write_ends(target);
  for (const char* name : {"tiktoken.model", "tokenizer_config.json"}) {
    fs::copy_file(target.tokenizer + "/" + name, target.directory + "/" + name,
                  fs::copy_options::overwrite_existing, error);
    if (error) {
      throw std::runtime_error(target.tokenizer + "/" + name + ": cannot be copied to " +
                               target.directory + " (" + error.message() + ")");
    }
  }
}

}  // namespace runtime
