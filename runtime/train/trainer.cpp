#include "runtime/train/trainer.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numbers>

#include "kernels/base/verify.hpp"

namespace runtime {

double LearningRate::at(uint64_t step) const {
  if (step < warmup_steps)
    return rate * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  if (step + 1 >= steps) return rate * last_share;
  const double way = static_cast<double>(step - warmup_steps) /
                     static_cast<double>(std::max<uint64_t>(1, steps - 1 - warmup_steps));
  return rate * (last_share + (1 - last_share) * 0.5 * (1 + std::cos(std::numbers::pi * way)));
}

Trainer::Trainer(const ModelConfig& config, const TrainedNumbers& numbers,
                 const TrainerOptions& options)
    : config_(config), options_(options), pool_(options.threads), numbers_(numbers) {
  model_options_.max_rows = static_cast<uint32_t>(options.rows);
  grads_.assign(options.shards, std::vector<float>(numbers.size));
  first_.resize(numbers.size);
  second_.resize(numbers.size);
  squares_.resize(numbers.parameters.size());
  for (size_t i = 0; i < options.shards; ++i)
    workers_.push_back(std::make_unique<TrainingWorker>(config, model_options_));
}

void Trainer::resume(uint64_t steps_done, uint64_t steps_skipped) {
  steps_done_ = steps_done;
  steps_skipped_ = steps_skipped;
  refresh();
}

StepReport Trainer::step(const std::vector<TrainingBatch>& shards) {
  VERIFY(shards.size() == options_.shards);
  pack();
  std::vector<double> losses(shards.size());
  pool_.parallel_for(shards.size(), [&](size_t i, unsigned) {
    losses[i] = learn(*workers_[i], i, shards[i]);
  });
  StepReport report;
  double learned = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    report.loss += losses[i];
    report.tokens += shards[i].rows();
    learned += shards[i].weight();
  }
  learned = std::max(learned, 1.0);
  report.loss /= learned;
  report.grad_norm = std::sqrt(reduce()) / learned;
  report.rate = options_.learning_rate.at(steps_done_);
  report.skipped = !std::isfinite(report.loss) || !std::isfinite(report.grad_norm);
  ++steps_done_;
  if (report.skipped) {
    ++steps_skipped_;
    forget_gradients();
  } else {
    apply(report.rate, learned, report.grad_norm);
    moved();
  }
  return report;
}

// The shards' gradients become their sum, in the first shard's array. Returns the sum of squares.
double Trainer::reduce() {
  const auto& all = numbers_.parameters;
  pool_.parallel_for(all.size(), [&](size_t i, unsigned) {
    std::vector<float*> shards;
    for (auto& grads : grads_) shards.push_back(grads.data() + all[i].offset);
    squares_[i] = kernels::sum_shards(shards, all[i].count);
  });
  double sum = 0;
  for (const double one : squares_) sum += one;
  return sum;
}

void Trainer::forget_gradients() {
  std::fill(grads_[0].begin(), grads_[0].end(), 0.0f);
}

void Trainer::apply(double rate, double tokens, double grad_norm) {
  kernels::AdamW step;
  step.rate = static_cast<float>(rate);
  step.beta1 = options_.beta1;
  step.beta2 = options_.beta2;
  step.epsilon = options_.epsilon;
  // Skipped steps leave the moments alone, so they do not count.
  const auto moves = static_cast<int>(steps_done_ - steps_skipped_);
  const auto correction = [moves](float beta) {
    double power = 1;
    for (int i = 0; i < moves && power > 1e-12; ++i) power *= static_cast<double>(beta);
    return static_cast<float>(1 - power);
  };
  step.correction1 = correction(options_.beta1);
  step.correction2 = correction(options_.beta2);
  const double clip = std::min(1.0, static_cast<double>(options_.clip) / (grad_norm + 1e-12));
  step.grad_scale = static_cast<float>(clip / tokens);
  const auto& all = numbers_.parameters;
  pool_.parallel_for(all.size(), [&](size_t i, unsigned) {
    const Parameter& p = all[i];
    if (!p.learned) return;
    kernels::AdamW own = step;
    own.decay = p.decays ? options_.weight_decay : 0;
    kernels::adamw_step(own, {numbers_.masters + p.offset, first_.data() + p.offset,
                              second_.data() + p.offset, grads_[0].data() + p.offset,
                              numbers_.values + p.offset, p.count, rounds(p)});
  });
}

std::array<double, kNetworkParts> Trainer::seconds() const {
  std::array<double, kNetworkParts> sum{};
  for (const auto& worker : workers_)
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += worker->timer().seconds()[i];
  return sum;
}

Trainer::Evaluation Trainer::evaluate(const std::vector<TrainingBatch>& batches) {
  pack();
  std::vector<TrainingWorker::Result> results(batches.size());
  // A worker serves one thread; which batches it takes does not matter.
  std::atomic<size_t> next{0};
  pool_.parallel_for(std::min(workers_.size(), batches.size()), [&](size_t worker, unsigned) {
    for (size_t i = next++; i < batches.size(); i = next++)
      results[i] = measure(*workers_[worker], batches[i]);
  });
  Evaluation evaluation;
  for (size_t i = 0; i < batches.size(); ++i) {
    evaluation.loss += results[i].loss;
    evaluation.right += results[i].right;
    evaluation.tokens += batches[i].weight();
  }
  evaluation.loss /= std::max(evaluation.tokens, 1.0);
  evaluation.right /= std::max(evaluation.tokens, 1.0);
  return evaluation;
}

}  // namespace runtime
