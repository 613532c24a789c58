// Directories of weights for tests: a copy of a small good one in a temporary place, and tools to
// damage it.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "runtime/model.hpp"
#include "runtime/model_config.hpp"
#include "runtime/weights.hpp"
#include "tests/support/temporary_directory.hpp"

namespace damage {

namespace json = boost::json;
using support::TemporaryDirectory;

inline std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

inline void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

inline void edit_json(const std::string& path, const std::function<void(json::object&)>& edit) {
  json::value value = json::parse(read(path));
  edit(value.get_object());
  write(path, json::serialize(value));
}

struct Header {
  json::object object;
  std::string data;
};

inline Header read_header(const std::string& path) {
  const std::string bytes = read(path);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  return {json::parse(bytes.substr(8, length)).get_object(), bytes.substr(8 + length)};
}

inline void write_header(const std::string& path, const std::string& text,
                         const std::string& data) {
  const uint64_t length = text.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  write(path, bytes + text + data);
}

// Changes the header of a safetensors file; the data stays.
inline void edit_header(const std::string& path, const std::function<void(json::object&)>& edit) {
  Header header = read_header(path);
  edit(header.object);
  write_header(path, json::serialize(header.object), header.data);
}

// What loading the directory complains about, with DIR for its path; empty: nothing.
inline std::string load_error(const std::string& directory) {
  try {
    const auto config = runtime::ModelConfig::load(directory);
    const auto weights = runtime::WeightsFile::load(directory);
    const auto ops = kernels::make_cpu_ops(1);
    runtime::ModelOptions options;
    options.max_rows = 4;
    runtime::load_hybrid_model(config, weights, *ops, options);
    return {};
  } catch (const std::runtime_error& error) {
    std::string message = error.what();
    for (size_t at = message.find(directory); at != std::string::npos;
         at = message.find(directory, at)) {
      message.replace(at, directory.size(), "DIR");
    }
    return message;
  }
}

}  // namespace damage
