// What a shutdown waits for: the step under way, and nothing behind it.
#include <catch2/catch.hpp>
#include <condition_variable>

#include "actors/system.hpp"
#include "tests/support/actor_lab.hpp"

using namespace actors;
using std::chrono::milliseconds;

namespace {

// Shared with a model whose steps wait until the gate opens.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  int steps = 0;

  void step() {
    std::unique_lock lock(mutex);
    ++steps;
    changed.notify_all();
    changed.wait(lock, [this] { return open; });
  }
  void wait_for_step() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return steps > 0; });
  }
  void let_go() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
};

class GatedModel final : public runtime::Model {
 public:
  GatedModel(uint32_t page_tokens, std::shared_ptr<Gate> gate)
      : model_(page_tokens), gate_(std::move(gate)) {}
  uint32_t vocab_size() const override { return model_.vocab_size(); }
  runtime::CacheGeometry geometry() const override { return model_.geometry(); }
  uint64_t weight_bytes() const override { return 0; }
  void forward(const runtime::ForwardBatch& batch, const runtime::CacheMemory& memory) override {
    gate_->step();
    model_.forward(batch, memory);
  }
  void logits(size_t first, size_t count, float* out) override { model_.logits(first, count, out); }

 private:
  AlphabetModel model_;
  std::shared_ptr<Gate> gate_;
};

}  // namespace

TEST_CASE("Plans that wait behind the step under way are not run once a drain gave up",
          "[actors]") {
  const auto gate = std::make_shared<Gate>();
  SystemOptions options;
  options.factory = [gate](kernels::Ops&, const runtime::ModelOptions& model) {
    LoadedModel loaded;
    loaded.model = std::make_unique<GatedModel>(model.page_tokens, gate);
    loaded.tokenizer = support::byte_tokenizer();
    return loaded;
  };
  const Recorder recorder;
  {
    const auto system = System::start(lab_config(), std::move(options));
    system->wait_ready();
    auto request = ask(std::string(200, '0'), 50);  // several chunks: two plans are always sent
    REQUIRE(system->submit(std::move(request), recorder.sink()).has_value());
    gate->wait_for_step();
    CHECK_FALSE(system->drain(milliseconds(0)));
    REQUIRE(recorder.last<Failed>());
    CHECK(recorder.last<Failed>()->error.code == kernels::ErrorCode::kUnavailable);
    gate->let_go();
  }
  CHECK(gate->steps == 1);
}

TEST_CASE("A shutdown tells every request why it ends, whatever it overtakes",
          "[actors][property]") {
  const auto steps = GENERATE(range(0u, 60u));
  CAPTURE(steps);
  std::optional<SystemLab> lab(std::in_place, lab_config(), alphabet_factory(), steps);
  lab->settle();
  const Recorder recorder;
  auto request = ask("0", 400);
  request.sampling.ignore_eos = true;
  REQUIRE((*lab)->submit(std::move(request), recorder.sink()).has_value());
  for (uint32_t i = 0; i < steps; ++i) lab->step();
  lab.reset();
  REQUIRE(recorder.last<Failed>());
  CHECK(recorder.last<Failed>()->error.code == kernels::ErrorCode::kUnavailable);
  CHECK(recorder.protocol_error(1) == "");
}
