#include "runtime/safetensors.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "runtime/checkpoint_writer.hpp"
#include "runtime/counter_random.hpp"
#include "runtime/mxfp4.hpp"
#include "runtime/safetensors_writer.hpp"
#include "weights_support.hpp"

using runtime::SafeTensorsFile;
using runtime::WeightsFile;

namespace {

void fill_bytes(std::span<std::byte> data) {
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 37);
}

float decode_mxfp4(uint8_t code) {
  constexpr float kMagnitudes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  return (code & 8) != 0 ? -kMagnitudes[code & 7] : kMagnitudes[code & 7];
}

}  // namespace

TEST_CASE("What the writer wrote the reader reads", "[runtime][safetensors]") {
  const damage::TemporaryDirectory directory;
  runtime::SafeTensorsWriter writer;
  writer.add("a", "F32", {2, 3}, fill_bytes);
  writer.add("b.weight", "BF16", {5}, fill_bytes);
  writer.add("empty", "U8", {0, 4}, fill_bytes);
  writer.add("scalar", "F32", {}, fill_bytes);
  writer.write(directory.file("model.safetensors"));
  const SafeTensorsFile file(directory.file("model.safetensors"));
  REQUIRE(file.tensors().size() == 4);
  CHECK(file.find("a")->shape == std::vector<uint64_t>{2, 3});
  CHECK(file.find("a")->data.size() == 24);
  CHECK(file.find("b.weight")->dtype == "BF16");
  CHECK(file.find("b.weight")->data[9] == static_cast<std::byte>(9 * 37 & 255));
  CHECK(file.find("empty")->data.empty());
  CHECK(file.find("scalar")->elements() == 1);
  CHECK(file.find("c") == nullptr);
  CHECK_THROWS_WITH(writer.write(directory.file("no/such/place")),
                    Catch::Contains("no/such/place: cannot be written"));
}

TEST_CASE("Vectors are widened from every float dtype, and padding is dropped on request",
          "[runtime][safetensors]") {
  const damage::TemporaryDirectory directory;
  const std::string data = std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8) /* F32 1, -2 */ +
                           std::string("\x80\x3f\x00\xc0", 4) /* BF16 */ +
                           std::string("\x00\x3c\x00\xc0", 4) /* F16 */;
  damage::write_header(directory.file("model.safetensors"),
                       R"({"f32":{"dtype":"F32","shape":[1,1,2,1],"data_offsets":[0,8]},)"
                       R"("bf16":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]},)"
                       R"("f16":{"dtype":"F16","shape":[2],"data_offsets":[12,16]}})",
                       data);
  const WeightsFile weights = WeightsFile::load(directory.path());
  const std::vector<float> expected = {1, -2};
  CHECK(weights.floats("f32", {1, 1, 2, 1}) == expected);
  CHECK(weights.floats("bf16", {2}) == expected);
  CHECK(weights.floats("f16", {2}) == expected);
  CHECK(weights.padded_floats("f32", 2) == expected);
  CHECK(weights.padded_floats("bf16", 1) == std::vector<float>{1});
  CHECK_THROWS_WITH(weights.floats("bf16", {3}), "tensor bf16: expected shape [3], found [2]");
  CHECK_THROWS_WITH(weights.table("bf16", 1, 2), "tensor bf16: expected shape [1, 2], found [2]");
}

TEST_CASE("No damage to a header crashes the reader", "[runtime][safetensors][property]") {
  const auto seed = GENERATE(range(0u, 20u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const damage::TemporaryDirectory directory;
  const std::string path = directory.file("model.safetensors");
  runtime::SafeTensorsWriter writer;
  for (const char* name : {"a", "b", "c"}) writer.add(name, "F32", {4, 2}, fill_bytes);
  writer.write(path);
  const std::string good = damage::read(path);
  for (int round = 0; round < 50; ++round) {
    std::string bad = good;
    for (auto changes = 1 + random() % 4; changes > 0; --changes)
      bad[random() % bad.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bad.resize(random() % bad.size());
    damage::write(path, bad);
    try {
      const SafeTensorsFile file(path);
      for (const auto& [name, tensor] : file.tensors()) CHECK(tensor.data.size() <= bad.size());
    } catch (const std::runtime_error& error) {
      CHECK(std::string(error.what()).starts_with(path + ": "));
    }
  }
}

TEST_CASE("MXFP4 codes are the nearest under their scale", "[runtime][safetensors]") {
  const runtime::CounterRandom random(3, "values");
  for (uint64_t group = 0; group < 50; ++group) {
    std::array<float, 32> values{};
    for (uint64_t i = 0; i < 32; ++i)
      values[i] = static_cast<float>(
          std::ldexp(random.normal(group * 32 + i), static_cast<int>(group) - 25));
    std::array<uint8_t, 16> packed{};
    const uint8_t scale = runtime::encode_mxfp4(values, packed);
    float largest = 0;
    for (size_t i = 0; i < 32; ++i) {
      const float found = std::ldexp(
          decode_mxfp4(static_cast<uint8_t>(i % 2 == 0 ? packed[i / 2] & 15 : packed[i / 2] >> 4)),
          scale - 127);
      largest = std::max(largest, std::fabs(found));
      float nearest = INFINITY;
      for (uint8_t code = 0; code < 16; ++code) {
        nearest =
            std::min(nearest, std::fabs(values[i] - std::ldexp(decode_mxfp4(code), scale - 127)));
      }
      CHECK(std::fabs(values[i] - found) == nearest);
    }
    CHECK(largest >= std::ldexp(3.0f, scale - 127));  // the scale is not larger than it must be
  }
}

TEST_CASE("The counter-based numbers are standard normal and independent of order",
          "[runtime][safetensors]") {
  const runtime::CounterRandom random(1, "model.norm.weight"), other(1, "model.norm.weighs");
  double sum = 0, squares = 0, product = 0;
  constexpr int kCount = 100000;
  for (uint64_t i = 0; i < kCount; ++i) {
    const double x = random.normal(i);
    sum += x;
    squares += x * x;
    product += x * other.normal(i);
  }
  CHECK(std::fabs(sum / kCount) < 0.015);
  CHECK(std::fabs(squares / kCount - 1) < 0.02);
  CHECK(std::fabs(product / kCount) < 0.015);
}

TEST_CASE("A checkpoint has the same bytes for the same seed and loads", "[runtime][safetensors]") {
  const damage::TemporaryDirectory first, second, third;
  const std::string preset = GENERATE("tiny-k3", "tiny-linear");
  runtime::write_checkpoint({preset, first.path(), 7});
  runtime::write_checkpoint({preset, second.path(), 7});
  runtime::write_checkpoint({preset, third.path(), 8});
  for (const char* name :
       {"config.json", "model.safetensors", "tiktoken.model", "tokenizer_config.json"}) {
    INFO(name);
    CHECK(damage::read(first.file(name)) == damage::read(second.file(name)));
  }
  CHECK(damage::read(first.file("model.safetensors")) !=
        damage::read(third.file("model.safetensors")));
  CHECK(damage::load_error(first.path()).empty());
}
