// Whether a training run is the same run to the byte when it is cut into pieces and resumed, and on
// one thread.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/train/training_run.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/toy_documents.hpp"

namespace support {

inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

// train(options, held-out documents or null) makes the run, of 6 steps, in options.directory.
// Leaves `options` on `directory`, which then holds a finished run. Returns what the whole run did.
template <class Options, class Train>
auto check_resumed_runs(Options& options, const TemporaryDirectory& directory,
                        const std::vector<std::string>& files, const ToyDocuments& held_out,
                        const Train& train) {
  const TemporaryDirectory whole, cut;
  options.directory = whole.path();
  const auto result = train(options, &held_out);
  options.directory = cut.path();
  for (const uint64_t steps : {1, 3, 2}) {
    options.stop_after = steps;
    train(options, nullptr);
  }
  options.directory = directory.path();
  options.stop_after = 0;
  options.trainer.threads = 1;
  train(options, nullptr);
  for (const std::string& file : files) {
    INFO(file);
    CHECK(bytes_of(whole.path() + file) == bytes_of(cut.path() + file));
    CHECK(bytes_of(whole.path() + file) == bytes_of(directory.path() + file));
  }
  return result;
}

}  // namespace support
