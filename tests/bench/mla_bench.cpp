// Latent attention: one token at depth, and a prefill chunk.
//   bench-mla [threads]
#include "kernels/device.hpp"
#include "tests/bench/timing.hpp"

namespace {

using kernels::DType;

constexpr size_t kHeads = 8, kNope = 128, kRope = 64, kValue = 128, kPage = 64;

struct Shape {
  const char* name;
  size_t kv_lora, position, tokens;
  DType kv_dtype;
};

void bench_mla(bench::Run& run, const Shape& shape) {
  const size_t context = shape.position + shape.tokens, page_count = (context + kPage - 1) / kPage;
  const size_t row = shape.kv_lora + kRope;
  const size_t page_bytes = kPage * row * kernels::dtype_bytes(shape.kv_dtype);
  const auto device = kernels::make_cpu_device();
  const kernels::Buffer cache = device->allocate(page_count * page_bytes);
  std::memset(cache.data(), 0, cache.bytes());
  std::vector<uint32_t> pages(page_count);
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<uint32_t>(i);
  const size_t query_width = kHeads * (kNope + kRope);
  const auto q = bench::floats(shape.tokens * query_width), ckv = bench::floats(shape.tokens * row);
  const std::vector<float> ones(shape.kv_lora, 1.0f);
  std::vector<kernels::MatrixPtr> absorb_k, absorb_v;
  for (size_t h = 0; h < kHeads; ++h) {
    absorb_k.push_back(
        std::move(bench::matrices(run.ops(), DType::kBF16, shape.kv_lora, kNope, 1)[0]));
    absorb_v.push_back(
        std::move(bench::matrices(run.ops(), DType::kBF16, kValue, shape.kv_lora, 1)[0]));
  }
  std::vector<float> out(shape.tokens * kHeads * kValue);
  kernels::MlaArgs args;
  args.heads = kHeads;
  args.d_nope = kNope;
  args.d_rope = kRope;
  args.d_v = kValue;
  args.kv_lora = shape.kv_lora;
  args.q = {q.data(), query_width};
  args.ckv = {ckv.data(), row};
  args.kv_norm = ones.data();
  args.absorb_k = absorb_k;
  args.absorb_v = absorb_v;
  args.page_base = cache.data();
  args.page_stride = page_bytes;
  args.page_tokens = kPage;
  args.kv_dtype = shape.kv_dtype;
  args.out = {out.data(), kHeads * kValue};
  kernels::Segment segment;
  segment.row_count = static_cast<uint32_t>(shape.tokens);
  segment.position = static_cast<uint32_t>(shape.position);

  const auto tokens = static_cast<double>(shape.tokens);
  const double pairs = tokens * static_cast<double>(shape.position) + tokens * (tokens + 1) / 2;
  bench::Work work;  // scores against a latent row and its shared key, and sums of latent rows
  work.flops = pairs * 2.0 * kHeads * static_cast<double>(row + shape.kv_lora);
  work.read_bytes = static_cast<double>(cache.bytes());
  run.report(shape.name, work, [&] {
    run.ops().mla(args, {{&segment, 1}, pages, static_cast<uint32_t>(shape.tokens)});
  });
}

}  // namespace

int main(int argc, char** argv) {
  bench::Run run(argc, argv);
  bench_mla(run, {"MLA decode at 32k, latent 512, F32", 512, 32767, 1, DType::kF32});
  bench_mla(run, {"MLA decode at 32k, latent 512, BF16", 512, 32767, 1, DType::kBF16});
  bench_mla(run, {"MLA decode at 32k, latent 256, F32", 256, 32767, 1, DType::kF32});
  bench_mla(run, {"MLA prefill 512 at 0, latent 256", 256, 0, 512, DType::kF32});
  bench_mla(run, {"MLA prefill 512 at 4096, latent 256", 256, 4096, 512, DType::kF32});
  return 0;
}
