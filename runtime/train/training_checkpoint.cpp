#include "runtime/train/training_checkpoint.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "runtime/safetensors.hpp"
#include "runtime/safetensors_writer.hpp"

namespace runtime {

namespace {

namespace json = boost::json;

json::object to_json(const BatchStream::Position& at) {
  return {{"epoch", at.epoch}, {"index", at.index}, {"offset", at.offset}, {"rows", at.rows}};
}

BatchStream::Position position(const json::value& value) {
  const auto number = [&](const char* key) { return value.at(key).to_number<uint64_t>(); };
  return {number("epoch"), number("index"), number("offset"), number("rows")};
}

}  // namespace

void save_training(const std::string& path, Trainer& trainer, const TrainingProgress& progress) {
  const std::string text = json::serialize(json::object{{"steps_done", progress.steps_done},
                                                        {"steps_skipped", progress.steps_skipped},
                                                        {"tokens", progress.tokens},
                                                        {"text", to_json(progress.text)},
                                                        {"examples", to_json(progress.examples)},
                                                        {"setup", progress.setup}});
  SafeTensorsWriter writer;
  const auto floats = [&](const char* name, const float* from) {
    writer.add(name, "F32", {trainer.numbers().size}, [from](std::span<std::byte> data) {
      std::memcpy(data.data(), from, data.size());
    });
  };
  floats("master", trainer.numbers().masters);
  floats("first_moment", trainer.first_moments());
  floats("second_moment", trainer.second_moments());
  writer.add("progress", "U8", {text.size()}, [&](std::span<std::byte> data) {
    std::memcpy(data.data(), text.data(), data.size());
  });
  const std::string draft = path + ".new";
  writer.write(draft);
  std::error_code error;
  std::filesystem::rename(draft, path, error);
  if (error) throw std::runtime_error(path + ": cannot be replaced (" + error.message() + ")");
}

TrainingProgress load_training(const std::string& path, const std::string& setup,
                               Trainer& trainer) {
  const SafeTensorsFile file(path);
  const auto require = [&](const char* name) {
    const StoredTensor* tensor = file.find(name);
    if (tensor == nullptr)
      throw std::runtime_error(path + ": tensor " + name +
                               " is missing; not a training checkpoint");
    return *tensor;
  };
  const auto floats = [&](const char* name) {
    const StoredTensor tensor = require(name);
    if (tensor.dtype != "F32" || tensor.elements() != trainer.numbers().size) {
      throw std::runtime_error(path + ": tensor " + name + " holds " +
                               std::to_string(tensor.elements()) + " numbers; this run has " +
                               std::to_string(trainer.numbers().size) + " parameters");
    }
    return tensor.data;
  };
  const auto master = floats("master"), first = floats("first_moment"),
             second = floats("second_moment");
  const StoredTensor text = require("progress");
  boost::system::error_code error;
  const json::value value =
      json::parse({reinterpret_cast<const char*>(text.data.data()), text.data.size()}, error);
  TrainingProgress progress;
  try {
    progress.steps_done = value.at("steps_done").to_number<uint64_t>();
    progress.steps_skipped = value.at("steps_skipped").to_number<uint64_t>();
    progress.tokens = value.at("tokens").to_number<uint64_t>();
    progress.text = position(value.at("text"));
    progress.examples = position(value.at("examples"));
    progress.setup = value.at("setup").as_string();
  } catch (const std::exception&) {
    throw std::runtime_error(path + ": tensor progress is not the progress of a training run");
  }
  if (progress.setup != setup) {
    throw std::runtime_error(path + ": belongs to another run (" + progress.setup +
                             "), this one is (" + setup + ")");
  }
  std::memcpy(trainer.numbers().masters, master.data(), master.size());
  std::memcpy(trainer.first_moments(), first.data(), first.size());
  std::memcpy(trainer.second_moments(), second.data(), second.size());
  trainer.resume(progress.steps_done, progress.steps_skipped);
  return progress;
}

}  // namespace runtime
