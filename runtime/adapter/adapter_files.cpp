#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstring>
#include <span>
#include <stdexcept>

#include "runtime/adapter/adapter.hpp"
#include "runtime/config_reader.hpp"
#include "runtime/output_files.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/safetensors_writer.hpp"
#include "runtime/text_file.hpp"

namespace runtime {

namespace {

namespace json = boost::json;

constexpr const char* kRoot = "base_model.model.";
constexpr const char* kNested = "language_model.";  // prefix of K3's text model

// A tensor of the file: `count` numbers of the factors from `offset` on.
struct FileTensor {
  std::string name;
  std::vector<uint64_t> shape;
  size_t offset = 0, count = 0;
};

// Gate and up are one module here and two in a file: with the same A, and a half of B each.
std::vector<FileTensor> file_tensors(const AdapterLayout& layout, const std::string& prefix) {
  std::vector<FileTensor> tensors;
  for (const Parameter& p : layout.all()) {
    const size_t dot = p.name.rfind('.');
    const std::string module = p.name.substr(0, dot), factor = p.name.substr(dot) + ".weight";
    const std::string root = kRoot + prefix;
    constexpr std::string_view kPair = "gate_up_proj";
    if (!module.ends_with(kPair)) {
      tensors.push_back({root + module + factor, p.shape, p.offset, p.count});
      continue;
    }
    const std::string before = root + module.substr(0, module.size() - kPair.size());
    const bool is_a = factor == ".lora_A.weight";
    std::vector<uint64_t> shape = p.shape;
    if (!is_a) shape[0] /= 2;
    const size_t count = is_a ? p.count : p.count / 2;
    tensors.push_back({before + "gate_proj" + factor, shape, p.offset, count});
    tensors.push_back({before + "up_proj" + factor, shape, p.offset + p.count - count, count});
  }
  return tensors;
}

void read_factors(const std::string& path, Adapter& adapter) {
  const SafeTensorsFile file(path);
  const auto fail = [&](const std::string& name, const std::string& problem) {
    throw std::runtime_error(path + ": tensor " + name + " " + problem);
  };
  const auto first = file.tensors().lower_bound(kRoot + std::string(kNested));
  const bool nested = first != file.tensors().end() &&
                      first->first.starts_with(kRoot + std::string(kNested));
  const auto tensors = file_tensors(adapter.layout, nested ? kNested : "");
  std::vector<bool> is_set(adapter.factors.size());
  for (const FileTensor& wanted : tensors) {
    const StoredTensor* tensor = file.find(wanted.name);
    if (tensor == nullptr) fail(wanted.name, "is missing");
    if (tensor->shape != wanted.shape) {
      fail(wanted.name, "has shape " + shape_text(tensor->shape) + "; this model and rank need " +
                            shape_text(wanted.shape));
    }
    if (!tensor->float_type())
      fail(wanted.name, "is " + tensor->dtype + "; expected F32, BF16 or F16");
    const std::vector<float> values = tensor->floats(wanted.count);
    for (size_t i = 0; i < wanted.count; ++i) {
      float& factor = adapter.factors[wanted.offset + i];
      if (is_set[wanted.offset + i] && values[i] != factor)
        fail(wanted.name, "differs from that of gate_proj; the two modules share one");
      factor = values[i];
      is_set[wanted.offset + i] = true;
    }
  }
  for (const auto& [name, tensor] : file.tensors()) {
    bool known = false;
    for (const FileTensor& one : tensors) known = known || one.name == name;
    if (!known) fail(name, "belongs to no target module of adapter_config.json");
  }
}

AdapterSettings read_settings(const std::string& path) {
  boost::system::error_code error;
  const json::value value = json::parse(read_text(path), error);
  if (error || !value.is_object()) throw std::runtime_error(path + ": is no JSON object");
  const ConfigReader reader(value.get_object(), path, "");
  if (reader.text("peft_type") != "LORA") reader.fail("peft_type", "must be \"LORA\"");
  if (reader.text_or("bias", "none") != "none") reader.fail("bias", "must be \"none\"");
  for (const char* flag : {"use_dora", "use_rslora", "fan_in_fan_out"})
    if (reader.flag_or(flag, false)) reader.fail(flag, "must be false: it is not supported");
  for (const char* pattern : {"rank_pattern", "alpha_pattern"}) {
    const json::value* found = reader.find(pattern);
    if (found != nullptr && !(found->is_object() && found->get_object().empty()))
      reader.fail(pattern, "must be empty: one rank and alpha hold for all modules");
  }
  AdapterSettings settings;
  settings.rank = reader.size("r", 1, 1024);
  settings.alpha = static_cast<double>(reader.number("lora_alpha", 1e-6, 1e6));
  const json::value* targets = reader.find("target_modules");
  if (targets == nullptr || !targets->is_array() || targets->get_array().empty())
    reader.fail("target_modules", "must be a list of module names");
  for (const json::value& target : targets->get_array()) {
    if (!target.is_string()) reader.fail("target_modules", "must be a list of module names");
    settings.targets.emplace_back(target.get_string());
  }
  return settings;
}

}  // namespace

void save_adapter(const std::string& directory, const Adapter& adapter, const AdapterBase& base) {
  make_directory(directory);
  json::array targets;
  for (const std::string& target : adapter.settings.targets) targets.emplace_back(target);
  const json::object config = {{"peft_type", "LORA"},
                               {"task_type", "CAUSAL_LM"},
                               {"base_model_name_or_path", base.model},
                               {"r", adapter.settings.rank},
                               {"lora_alpha", adapter.settings.alpha},
                               {"lora_dropout", 0.0},
                               {"bias", "none"},
                               {"target_modules", targets}};
  SafeTensorsWriter writer;
  for (const FileTensor& tensor : file_tensors(adapter.layout, base.prefix)) {
    const float* from = adapter.factors.data() + tensor.offset;
    writer.add(tensor.name, "F32", tensor.shape, [from](std::span<std::byte> data) {
      std::memcpy(data.data(), from, data.size());
    });
  }
  writer.write(directory + "/adapter_model.safetensors");
  write_file(directory + "/adapter_config.json", json::serialize(config) + "\n");
}

Adapter load_adapter(const std::string& directory, const ModelConfig& config) {
  const std::string path = directory + "/adapter_config.json";
  try {
    Adapter adapter(config, read_settings(path));
    read_factors(directory + "/adapter_model.safetensors", adapter);
    return adapter;
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

}  // namespace runtime
