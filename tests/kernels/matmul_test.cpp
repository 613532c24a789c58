// Matrix products of every weight type against double precision, and their independence of batch,
// threads and layout.
#include <catch2/catch.hpp>
#include <random>

#include "tests/kernels/tools.hpp"

using namespace kernels;
using tools::random_matrix;

namespace {

std::vector<float> multiply(Ops& ops, const Matrix& w, const std::vector<float>& x, size_t rows) {
  std::vector<float> y(rows * w.n(), -1.0f);
  ops.matmul({x.data(), w.k()}, w, {y.data(), w.n()}, rows);
  return y;
}

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kMXFP4};

}  // namespace

TEST_CASE(
    "A matrix product is within rounding of double precision for every type, target and row count",
    "[kernels]") {
  std::mt19937 rng(3);
  const auto ops = make_cpu_ops(2);
  tools::for_each_target([&] {
    for (const DType dtype : kTypes) {
      for (const auto& [n, k] :
           {std::pair<size_t, size_t>{16, 32}, {40, 288}, {7, 544}, {100, 1024}}) {
        const auto stored = random_matrix(rng, dtype, n, k);
        const auto w = ops->pack(stored.view());
        for (const size_t rows : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 13u, 130u}) {
          const auto x = tools::random_floats(rng, rows * k);
          const auto y = multiply(*ops, *w, x, rows);
          double worst = 0;  // error over sum |x w|
          for (size_t r = 0; r < rows; ++r) {
            for (size_t i = 0; i < n; ++i) {
              double sum = 0, magnitude = 0;
              for (size_t j = 0; j < k; ++j) {
                sum += double{x[r * k + j]} * stored.value[i * k + j];
                magnitude += std::fabs(double{x[r * k + j]} * stored.value[i * k + j]);
              }
              worst = std::max(worst, std::fabs(double{y[r * n + i]} - sum) / magnitude);
            }
          }
          INFO(to_string(dtype) << " n " << n << " k " << k << " rows " << rows);
          CHECK(worst < 1e-6);
        }
      }
    }
  });
}

TEST_CASE("A row's product has the same bytes in any batch and on any number of threads",
          "[kernels][property]") {
  const auto seed = GENERATE(range(0u, 4u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  tools::for_each_target([&] {
    for (const DType dtype : kTypes) {
      const size_t n = 1 + rng() % 300, k = 32 * (1 + rng() % 24), rows = 150;
      const auto stored = random_matrix(rng, dtype, n, k);
      const auto x = tools::random_floats(rng, rows * k);
      const auto one = make_cpu_ops(1);
      const auto w = one->pack(stored.view());
      std::vector<float> expected;
      for (size_t r = 0; r < rows; ++r) {
        const auto y = multiply(
            *one, *w,
            {x.begin() + static_cast<long>(r * k), x.begin() + static_cast<long>((r + 1) * k)}, 1);
        expected.insert(expected.end(), y.begin(), y.end());
      }
      for (const unsigned threads : {1u, 2u, 3u}) {
        const auto ops = make_cpu_ops(threads);
        for (const size_t batch : {2u, 3u, 4u, 5u, 8u, 9u, 14u, 16u, 24u, 150u}) {
          const std::vector<float> head(x.begin(), x.begin() + static_cast<long>(batch * k));
          const std::vector<float> want(expected.begin(),
                                        expected.begin() + static_cast<long>(batch * n));
          INFO(to_string(dtype) << " n " << n << " k " << k << " batch " << batch << " threads "
                                << threads);
          CHECK(tools::same_bytes(multiply(*ops, *w, head, batch), want));
        }
      }
    }
  });
}

TEST_CASE("A transposed view and its copy give the same product", "[kernels]") {
  std::mt19937 rng(5);
  const auto ops = make_cpu_ops(2);
  const auto stored = random_matrix(rng, DType::kBF16, 48, 64);  // read as 64 outputs of 48 inputs
  MatrixView transposed = stored.view();
  std::swap(transposed.n, transposed.k);
  std::swap(transposed.stride_n, transposed.stride_k);
  std::vector<uint16_t> copied(48 * 64);
  for (size_t i = 0; i < 64; ++i) {
    for (size_t j = 0; j < 48; ++j)
      std::memcpy(&copied[i * 48 + j], &stored.bytes[2 * (j * 64 + i)], 2);
  }
  const auto a = ops->pack(transposed);
  const auto b = ops->pack({DType::kBF16, copied.data(), nullptr, 64, 48, 48, 1});
  const auto x = tools::random_floats(rng, 3 * 48);
  CHECK(tools::same_bytes(multiply(*ops, *a, x, 3), multiply(*ops, *b, x, 3)));
}

TEST_CASE("Rows may lie apart, and columns past n are left alone", "[kernels]") {
  std::mt19937 rng(6);
  const auto ops = make_cpu_ops(1);
  const auto w = ops->pack(random_matrix(rng, DType::kF32, 21, 40).view());
  const auto x = tools::random_floats(rng, 8 * 50);
  std::vector<float> y(8 * 30, 7.0f), packed_x;
  ops->matmul({x.data(), 50}, *w, {y.data(), 30}, 8);
  for (size_t r = 0; r < 8; ++r)
    packed_x.insert(packed_x.end(), x.begin() + static_cast<long>(r * 50),
                    x.begin() + static_cast<long>(r * 50 + 40));
  const auto expected = multiply(*ops, *w, packed_x, 8);
  for (size_t r = 0; r < 8; ++r) {
    for (size_t i = 0; i < 30; ++i) CHECK(y[r * 30 + i] == (i < 21 ? expected[r * 21 + i] : 7.0f));
  }
}

TEST_CASE("MXFP4 decodes every code and every scale exactly", "[kernels]") {
  const auto ops = make_cpu_ops(1);
  const float value[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  tools::for_each_target([&] {
    for (int e = 0; e < 255; ++e) {
      // 16 outputs, one code each, in column e % 32; the other columns are 0.
      std::vector<uint8_t> packed(16 * 16, 0), scale(16, static_cast<uint8_t>(e));
      const unsigned column = static_cast<unsigned>(e) % 32;
      for (unsigned i = 0; i < 16; ++i)
        packed[i * 16 + column / 2] = static_cast<uint8_t>(column % 2 == 0 ? i : i << 4);
      const auto w = ops->pack({DType::kMXFP4, packed.data(), scale.data(), 16, 32, 0, 1});
      std::vector<float> x(32, 0.0f);
      x[column] = 1.0f;
      const auto y = multiply(*ops, *w, x, 1);
      for (size_t i = 0; i < 16; ++i) {
        if (y[i] != std::ldexp(value[i], e - 127))
          FAIL("scale " << e << " code " << i << " gives " << y[i]);
      }
    }
  });
}

TEST_CASE("MXFP4 reads the specification's bytes, low nibble first", "[kernels]") {
  const auto vectors = tools::k3_vectors();
  const auto& mxfp4 = vectors.at("mxfp4").as_object();
  const auto packed = tools::numbers(mxfp4.at("packed")),
             values = tools::numbers(mxfp4.at("values"));
  std::vector<uint8_t> bytes(16, 0), scale(1, mxfp4.at("scale").to_number<uint8_t>());
  for (size_t i = 0; i < packed.size(); ++i) bytes[i] = static_cast<uint8_t>(packed[i]);
  const auto ops = make_cpu_ops(1);
  const auto w = ops->pack({DType::kMXFP4, bytes.data(), scale.data(), 1, 32, 0, 1});
  for (size_t i = 0; i < values.size(); ++i) {
    std::vector<float> x(32, 0.0f);
    x[i] = 1.0f;
    CHECK(multiply(*ops, *w, x, 1)[0] == values[i]);
  }
}

TEST_CASE("MXFP4 weights stay packed in memory", "[kernels]") {
  std::mt19937 rng(7);
  const auto ops = make_cpu_ops(1);
  CHECK(ops->pack(random_matrix(rng, DType::kMXFP4, 64, 256).view())->bytes() ==
        64 * 256 / 2 + 64 * 256 / 32);
}
