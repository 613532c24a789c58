// Small traces written for a test, and what reading a bad one complains of.
#pragma once

#include <zlib.h>

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "net/trace/trace_reader.hpp"
#include "runtime/output_files.hpp"
#include "tests/support/temporary_directory.hpp"

namespace trace_files {

inline const std::string kModel = std::string(SLUICE_SOURCE_DIR) + "/config/models/tiny-k3";

class Files {
 public:
  // Returns the path.
  std::string write(const std::string& name, const std::string& text) {
    runtime::write_file(directory_.file(name), text);
    return directory_.file(name);
  }
  std::string write_gzip(const std::string& name, const std::string& text) {
    gzFile file = gzopen(directory_.file(name).c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    return directory_.file(name);
  }
  const std::string& directory() const { return directory_.path(); }

 private:
  support::TemporaryDirectory directory_;
};

inline net::Trace read(const std::vector<std::string>& paths, uint32_t block_tokens = 0) {
  return net::read_trace(paths, {block_tokens, kModel});
}

inline net::Trace read_text(const std::string& text, uint32_t block_tokens = 0) {
  Files files;
  return read({files.write("trace", text)}, block_tokens);
}

// The message without the file's path: "3: input_length must be ...".
inline std::string complaint(const std::string& text, uint32_t block_tokens = 0) {
  Files files;
  const std::string path = files.write("trace", text);
  try {
    read({path}, block_tokens);
  } catch (const std::runtime_error& error) {
    const std::string message = error.what();
    REQUIRE(message.rfind(path + ":", 0) == 0);
    return message.substr(path.size() + 1);
  }
  return "";
}

}  // namespace trace_files
