#include "runtime/train/weights_export.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "runtime/checkpoint_presets.hpp"
#include "runtime/safetensors_writer.hpp"

namespace runtime {

void export_weights(const WeightsExport& target, const ParameterStore& parameters) {
  namespace fs = std::filesystem;
  boost::json::object config = preset_config(target.preset);
  const bool nested = config.contains("text_config");
  if (nested && !parameters.quantised())
    config["text_config"].as_object().erase("quantization_config");
  std::error_code error;
  fs::create_directories(target.directory, error);
  const std::string path = target.directory + "/config.json";
  std::ofstream out(path, std::ios::trunc);
  out << boost::json::serialize(config) << "\n";
  out.close();
  if (!out) throw std::runtime_error(path + ": cannot be written");
  SafeTensorsWriter writer;
  parameters.write(nested ? "language_model." : "", writer);
  writer.write(target.directory + "/model.safetensors");
  if (target.tokenizer.empty()) return;
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
