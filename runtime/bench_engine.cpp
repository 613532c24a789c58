#include "runtime/bench_engine.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/base/verify.hpp"

namespace runtime {
namespace {

constexpr uint64_t kSeed = 20260727;

// Memory with small numbers in it. Pages that nobody wrote would all be the kernel's one page of
// zeros, which stays in the cache; these have to be read like a real context.
class ResidentDevice final : public kernels::Device {
 public:
  explicit ResidentDevice(kernels::Device& device) : device_(device) {}
  std::string_view name() const override { return device_.name(); }
  kernels::Buffer allocate(size_t bytes) override {
    kernels::Buffer buffer = device_.allocate(bytes);
    const CounterRandom random(kSeed, "memory");
    std::byte block[4096];
    for (size_t i = 0; i < sizeof block / 2; ++i) {
      // +-[1/8, 1/4) as bf16; a pair of them is such a number as fp32.
      const auto bits = static_cast<uint16_t>(0x3e00u | (random.bits(i) & 0x807fu));
      std::memcpy(block + 2 * i, &bits, sizeof bits);
    }
    for (size_t at = 0; at < bytes; at += sizeof block)
      std::memcpy(buffer.data() + at, block, std::min(sizeof block, bytes - at));
    return buffer;
  }
  std::unique_ptr<kernels::Stream> make_stream() override { return device_.make_stream(); }

 private:
  void release(void*, size_t) override { VERIFY(false); }  // buffers belong to device_
  kernels::Device& device_;
};

}  // namespace

BenchEngine::BenchEngine(kernels::Device& device, std::unique_ptr<Model> model, const Size& size)
    : size_(size),
      vocab_(model->vocab_size()),
      page_tokens_(model->geometry().page_tokens),
      random_(kSeed, "tokens") {
  ResidentDevice resident(device);
  const EngineLayout layout =
      EngineLayout::side_by_side(model->geometry(), size.sequences, size.pages);
  engine_ = std::make_unique<Engine>(resident, std::move(model), layout);
  bind_all();
}

void BenchEngine::bind_all() {
  StepPlan plan;
  for (uint32_t i = 0; i < size_.sequences; ++i)
    plan.commands.emplace_back(memory::Bind{memory::BlockKind::kState, i, 1, i});
  for (uint32_t i = 0; i < size_.pages; ++i)
    plan.commands.emplace_back(memory::Bind{memory::BlockKind::kPage, i, 1, i});
  engine_->run(plan);
}

void BenchEngine::open(uint32_t count, uint32_t tokens, uint32_t depth) {
  VERIFY(count <= size_.sequences);
  VERIFY(depth < tokens);
  StepPlan plan;
  Close close;
  for (const Sequence& sequence : sequences_) close.sequences.push_back(sequence.id);
  plan.commands.emplace_back(std::move(close));
  sequences_.clear();
  next_page_ = 0;
  for (uint32_t index = 0; index < count; ++index) {
    plan.commands.emplace_back(memory::Clear{{index, 1}});
    Sequence sequence;
    sequence.id = {++opened_};
    sequence.position = depth;
    sequence.tokens = tokens;
    for (uint32_t i = 0; i < tokens; ++i)
      sequence.prompt.push_back(static_cast<TokenId>(random_.bits(drawn_++) % vocab_));
    sequences_.push_back(std::move(sequence));
  }
  engine_->run(plan);
}

PlanRow BenchEngine::row(uint32_t index, uint32_t count) {
  Sequence& sequence = sequences_[index];
  PlanRow row;
  row.sequence = sequence.id;
  row.position = sequence.position;
  row.count = count;
  if (!sequence.prompt.empty()) {
    SequenceStart start;
    start.sampling.temperature = 0;
    start.tokens = std::exchange(sequence.prompt, {});
    start.prompt_tokens = sequence.tokens;
    start.slot = {index, 1};
    row.start = std::move(start);
  }
  sequence.position += count;
  const uint64_t pages = memory::pages_for(sequence.position, page_tokens_);
  for (; sequence.pages < pages; ++sequence.pages) {
    VERIFY(next_page_ < size_.pages);
    row.new_pages.push_back({next_page_++, 1});
  }
  row.sample = sequence.position >= sequence.tokens;
  return row;
}

void BenchEngine::forward(std::vector<PlanRow> rows) {
  StepPlan plan;
  plan.commands.emplace_back(Forward{step_++, std::move(rows)});
  const auto result = engine_->run(plan);
  for (const RowResult& row : result->rows) VERIFY(row.finite);
}

void BenchEngine::prefill() {
  for (uint32_t index = 0; index < sequences_.size(); ++index) {
    const Sequence& sequence = sequences_[index];
    while (sequence.position < sequence.tokens) {
      const uint32_t left = sequence.tokens - sequence.position;
      std::vector<PlanRow> rows;
      rows.push_back(row(index, std::min(size_.chunk_tokens, left)));
      forward(std::move(rows));
    }
  }
}

void BenchEngine::decode() {
  std::vector<PlanRow> rows;
  for (uint32_t index = 0; index < sequences_.size(); ++index) rows.push_back(row(index, 1));
  forward(std::move(rows));
}

}  // namespace runtime
