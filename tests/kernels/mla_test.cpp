// Absorbed MLA over pages against expanded attention in double precision, and its independence of
// paging and company.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>

#include "tests/kernels/tools.hpp"

using namespace kernels;

namespace {

struct Layer {
  size_t heads, d_nope, d_rope, d_v, kv_lora, rows;
  std::vector<float> w_k, w_v, kv_norm, q, ckv,
      gate;  // w_k [heads, d_nope, kv_lora], w_v [heads, d_v, kv_lora]

  size_t width() const { return kv_lora + d_rope; }

  Layer(std::mt19937& rng, size_t heads_, size_t kv_lora_, size_t d_rope_, size_t rows_)
      : heads(heads_), d_nope(24), d_rope(d_rope_), d_v(20), kv_lora(kv_lora_), rows(rows_) {
    w_k = tools::random_floats(rng, heads * d_nope * kv_lora, 0.3f);
    w_v = tools::random_floats(rng, heads * d_v * kv_lora, 0.3f);
    kv_norm = tools::random_floats(rng, kv_lora);
    q = tools::random_floats(rng, rows * heads * (d_nope + d_rope));
    ckv = tools::random_floats(rng, rows * width());
    gate = tools::random_floats(rng, rows * heads * d_v);
  }
};

// A cache of pages in shuffled places.
struct Cache {
  size_t page_tokens;
  std::vector<uint32_t> pages;
  std::vector<std::byte> bytes;

  Cache(std::mt19937& rng, const Layer& layer, size_t tokens)
      : page_tokens(tokens),
        pages(layer.rows / tokens + 2),
        bytes(pages.size() * (stride(layer) + 64)) {
    std::iota(pages.begin(), pages.end(), 0u);
    std::shuffle(pages.begin(), pages.end(), rng);
  }
  size_t stride(const Layer& layer) const { return page_tokens * layer.width() * sizeof(float); }
};

// Runs rows [begin, begin + count) of the sequence against the cache.
void run(Ops& ops, const Layer& l, Cache& cache, std::vector<float>& out, size_t begin,
         size_t count, DType kv_dtype = DType::kF32, bool gated = true, size_t write_from = 0) {
  std::vector<MatrixPtr> absorb_k, absorb_v;
  for (size_t h = 0; h < l.heads; ++h) {
    absorb_k.push_back(ops.pack({DType::kF32, &l.w_k[h * l.d_nope * l.kv_lora], nullptr, l.kv_lora,
                                 l.d_nope, 1, l.kv_lora}));
    absorb_v.push_back(ops.pack(
        {DType::kF32, &l.w_v[h * l.d_v * l.kv_lora], nullptr, l.d_v, l.kv_lora, l.kv_lora, 1}));
  }
  const size_t q_width = l.heads * (l.d_nope + l.d_rope), o_width = l.heads * l.d_v;
  const Rows gate = {l.gate.data() + begin * o_width, o_width};
  MlaArgs args;
  args.heads = l.heads;
  args.d_nope = l.d_nope;
  args.d_rope = l.d_rope;
  args.d_v = l.d_v;
  args.kv_lora = l.kv_lora;
  args.q = {l.q.data() + begin * q_width, q_width};
  args.ckv = {l.ckv.data() + begin * l.width(), l.width()};
  args.kv_norm = l.kv_norm.data();
  args.absorb_k = absorb_k;
  args.absorb_v = absorb_v;
  args.gate = gated ? &gate : nullptr;
  args.page_base = cache.bytes.data();
  args.page_stride = cache.stride(l) + 64;
  args.layer_offset = 64;
  args.page_tokens = cache.page_tokens;
  args.kv_dtype = kv_dtype;
  args.out = {out.data() + begin * o_width, o_width};
  const Segment segment = {0, static_cast<uint32_t>(count),     static_cast<uint32_t>(begin), 0,
                           0, static_cast<uint32_t>(write_from)};
  ops.mla(args, {{&segment, 1}, cache.pages, static_cast<uint32_t>(count)});
}

// Expanded attention, as the specification writes it.
std::vector<double> reference(const Layer& l) {
  const size_t d = l.d_nope + l.d_rope;
  std::vector<double> latent(l.rows * l.kv_lora), out(l.rows * l.heads * l.d_v, 0.0);
  for (size_t t = 0; t < l.rows; ++t) {
    double squares = 0;
    for (size_t i = 0; i < l.kv_lora; ++i) squares += std::pow(l.ckv[t * l.width() + i], 2);
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(l.kv_lora) + 1e-6);
    for (size_t i = 0; i < l.kv_lora; ++i)
      latent[t * l.kv_lora + i] = l.ckv[t * l.width() + i] * inverse * l.kv_norm[i];
  }
  for (size_t h = 0; h < l.heads; ++h) {
    const auto project = [&](const std::vector<float>& w, size_t rows_per_head, size_t row,
                             size_t t) {
      double sum = 0;
      for (size_t i = 0; i < l.kv_lora; ++i)
        sum += w[(h * rows_per_head + row) * l.kv_lora + i] * latent[t * l.kv_lora + i];
      return sum;
    };
    std::vector<double> key(l.rows * l.d_nope), value(l.rows * l.d_v);
    for (size_t t = 0; t < l.rows; ++t) {
      for (size_t i = 0; i < l.d_nope; ++i) key[t * l.d_nope + i] = project(l.w_k, l.d_nope, i, t);
      for (size_t i = 0; i < l.d_v; ++i) value[t * l.d_v + i] = project(l.w_v, l.d_v, i, t);
    }
    for (size_t t = 0; t < l.rows; ++t) {
      const float* q = &l.q[(t * l.heads + h) * d];
      std::vector<double> weight(t + 1);
      double max = -HUGE_VAL, total = 0;
      for (size_t s = 0; s <= t; ++s) {
        for (size_t i = 0; i < l.d_nope; ++i) weight[s] += q[i] * key[s * l.d_nope + i];
        for (size_t i = 0; i < l.d_rope; ++i)
          weight[s] += double{q[l.d_nope + i]} * l.ckv[s * l.width() + l.kv_lora + i];
        weight[s] /= std::sqrt(static_cast<double>(d));
        max = std::max(max, weight[s]);
      }
      for (double& w : weight) total += w = std::exp(w - max);
      for (size_t i = 0; i < l.d_v; ++i) {
        double& o = out[(t * l.heads + h) * l.d_v + i];
        for (size_t s = 0; s <= t; ++s) o += weight[s] / total * value[s * l.d_v + i];
        o /= 1 + std::exp(-double{l.gate[(t * l.heads + h) * l.d_v + i]});
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("Absorbed attention agrees with expanded attention in double precision", "[kernels]") {
  std::mt19937 rng(1);
  tools::for_each_target([&] {
    for (const auto& [heads, kv_lora, d_rope] :
         {std::tuple<size_t, size_t, size_t>{4, 48, 16}, {7, 32, 8}, {1, 20, 7}}) {
      const Layer layer(rng, heads, kv_lora, d_rope, 150);
      const auto expected = reference(layer);
      Cache cache(rng, layer, 64);
      std::vector<float> out(layer.rows * layer.heads * layer.d_v);
      const auto ops = make_cpu_ops(2);
      run(*ops, layer, cache, out, 0, layer.rows);
      INFO(heads << " heads, latent " << kv_lora);
      CHECK(tools::relative_error(out, expected) < 1e-5);
      run(*ops, layer, cache, out, 0, layer.rows, DType::kBF16);
      CHECK(tools::relative_error(out, expected) <
            0.1);  // a named lossy mode: 8 bits per cached value
    }
  });
}

TEST_CASE("Attention has the same bytes for any page size, chunking and thread count",
          "[kernels][property]") {
  const auto seed = GENERATE(range(0u, 4u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  const DType kv_dtype = seed % 2 == 0 ? DType::kF32 : DType::kBF16;
  tools::for_each_target([&] {
    const Layer layer(rng, 1 + rng() % 9, 32, seed == 3 ? 7 : 16, 140);
    std::vector<float> whole(layer.rows * layer.heads * layer.d_v);
    Cache cache(rng, layer, 64);
    run(*make_cpu_ops(1), layer, cache, whole, 0, layer.rows, kv_dtype);
    for (const size_t page_tokens : {1u, 8u, 64u, 256u}) {
      for (const size_t most : {1u, 9u, 100u}) {
        if (page_tokens != 8 && most == 1) continue;
        Cache pages(rng, layer, page_tokens);
        const auto ops = make_cpu_ops(1 + static_cast<unsigned>(rng() % 3));
        std::vector<float> out(whole.size());
        for (size_t row = 0; row < layer.rows;) {
          const size_t count = std::min<size_t>(1 + rng() % most, layer.rows - row);
          run(*ops, layer, pages, out, row, count, kv_dtype);
          row += count;
        }
        INFO("pages of " << page_tokens << ", pieces of at most " << most);
        CHECK(tools::same_bytes(out, whole));
      }
    }
  });
}

TEST_CASE("A long sequence's spans merge to the same bytes, however rows and threads share them",
          "[kernels][property]") {
  const auto seed = GENERATE(range(10u, 13u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  tools::for_each_target([&] {
    // Rows on both sides of the span boundaries at 512 and 1024; the last step is a decode.
    const Layer layer(rng, 1 + rng() % 11, 16, 8, 1040);
    std::vector<float> whole(layer.rows * layer.heads * layer.d_v);
    Cache cache(rng, layer, 64);
    run(*make_cpu_ops(1), layer, cache, whole, 0, layer.rows);
    Cache pages(rng, layer, seed == 11 ? 16 : 128);
    const auto ops = make_cpu_ops(2);
    std::vector<float> out(whole.size());
    for (size_t row = 0; row < layer.rows;) {
      const size_t left = layer.rows - row, most = row < 500 ? 300 : 1 + rng() % 30;
      const size_t count = std::min(left, 1 + rng() % most);
      run(*ops, layer, pages, out, row, count);
      row += count;
    }
    CHECK(tools::same_bytes(out, whole));
  });
}

TEST_CASE("Attention without a gate leaves the values unscaled", "[kernels]") {
  std::mt19937 rng(5);
  Layer layer(rng, 2, 32, 16, 3);
  std::fill(layer.gate.begin(), layer.gate.end(), 100.0f);  // sigmoid(100) = 1
  Cache cache(rng, layer, 4);
  std::vector<float> gated(layer.rows * layer.heads * layer.d_v), plain = gated;
  const auto ops = make_cpu_ops(1);
  run(*ops, layer, cache, gated, 0, 3);
  run(*ops, layer, cache, plain, 0, 3, DType::kF32, false);
  CHECK(tools::same_bytes(gated, plain));
}

TEST_CASE("Rows below write_from read what the pages hold and write nothing", "[kernels]") {
  std::mt19937 rng(7);
  const Layer layer(rng, 3, 32, 16, 90);
  std::vector<float> whole(layer.rows * layer.heads * layer.d_v), again(whole.size());
  Cache cache(rng, layer, 8);
  const auto ops = make_cpu_ops(2);
  run(*ops, layer, cache, whole, 0, layer.rows);
  Layer other = layer;  // same queries, other latents: below write_from they must not matter
  for (size_t i = 0; i < 64 * layer.width(); ++i) other.ckv[i] += 1.0f;
  const std::vector<std::byte> before = cache.bytes;
  run(*ops, other, cache, again, 30, 60, DType::kF32, true, 64);
  CHECK(cache.bytes == before);
  const auto first = static_cast<std::ptrdiff_t>(30 * layer.heads * layer.d_v);
  CHECK(std::equal(whole.begin() + first, whole.end(), again.begin() + first));
}
