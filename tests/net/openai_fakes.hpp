// A service that answers questions about itself and takes no requests: enough to parse bodies and
// build answers.
#pragma once

#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "actors/service.hpp"
#include "net/openai_api.hpp"
#include "runtime/tokenizer_files.hpp"

namespace testing {

namespace json = boost::json;

// One token per byte (ids 0..255), then 256 special tokens.
inline std::shared_ptr<const runtime::Tokenizer> byte_tokenizer() {
  static const auto tokenizer = [] {
    const auto directory = std::filesystem::temp_directory_path() /
                           ("sluice-net-tokenizer-" + std::to_string(getpid()));
    std::filesystem::create_directories(directory);
    runtime::write_tokenizer_files(directory.string(), 512);
    auto loaded = runtime::Tokenizer::load(directory.string());
    std::filesystem::remove_all(directory);
    return loaded;
  }();
  return tokenizer;
}

class FakeService final : public actors::Service {
 public:
  explicit FakeService(bool with_tokenizer = true) {
    info_.model_name = "tiny-k3";
    info_.model_path = "/models/tiny-k3";
    info_.context_length = 4096;
    info_.vocab_size = 512;
    info_.has_tokenizer = with_tokenizer;
    if (with_tokenizer) tokenizer_ = byte_tokenizer();
  }
  actors::ServiceInfo info_;
  actors::ServicePhase phase() const override { return {actors::ServicePhase::Kind::kReady, {}}; }
  bool ready() const override { return true; }
  actors::ServiceInfo info() const override { return info_; }
  kernels::Result<runtime::RequestId> submit(runtime::GenerateRequest, actors::Sink) override {
    return kernels::Error{kernels::ErrorCode::kUnavailable, "not a real service", ""};
  }
  void abort(runtime::RequestId) override {}
  uint32_t abort_by_rid(const std::string&) override { return 0; }
  uint32_t abort_all() override { return 0; }
  actors::ServiceMetrics metrics() override { return {}; }
  bool flush_cache() override { return true; }
  std::shared_ptr<const runtime::Tokenizer> tokenizer() const override { return tokenizer_; }

 private:
  std::shared_ptr<const runtime::Tokenizer> tokenizer_;
};

inline std::string text_of(const json::value& value) {
  return std::string(value.as_string().c_str());
}

}  // namespace testing
