#include "runtime/train/training_run.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <ostream>

#include "kernels/base/process_cpu.hpp"
#include "runtime/output_files.hpp"
#include "runtime/train/held_out.hpp"
#include "runtime/train/loss_curve.hpp"
#include "runtime/train/training_checkpoint.hpp"

namespace runtime {

namespace {

// What makes two runs the same run: everything that a step's result depends on.
std::string describe(const TrainingSubject& subject, const RunOptions& o) {
  char text[512];
  const TrainerOptions& t = o.trainer;
  std::snprintf(text, sizeof text,
                " seed %llu, %zu x %zu rows, sequences of %zu, examples %.3g, context %.3g, %llu "
                "steps, rate %.4g, warm-up %llu, last %.3g, decay %.3g, betas %.4g %.4g, clip "
                "%.3g, balance %.3g",
                static_cast<unsigned long long>(o.seed), t.shards, t.rows,
                o.batch.sequence_length, o.batch.example_share,
                static_cast<double>(o.batch.context_weight),
                static_cast<unsigned long long>(t.learning_rate.steps), t.learning_rate.rate,
                static_cast<unsigned long long>(t.learning_rate.warmup_steps),
                t.learning_rate.last_share, static_cast<double>(t.weight_decay),
                static_cast<double>(t.beta1), static_cast<double>(t.beta2),
                static_cast<double>(t.clip), static_cast<double>(t.balance_rate));
  return subject.setup + text;
}

// One line that is overwritten: how far, how well, how fast.
class ProgressLine {
 public:
  ProgressLine(std::ostream& out, uint64_t first, uint64_t last)
      : out_(out), first_(first), last_(last), start_(Clock::now()) {}

  void show(uint64_t step, uint64_t tokens, double loss) {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    const double done = static_cast<double>(step - first_);
    const auto left =
        static_cast<uint64_t>(seconds / done * static_cast<double>(last_ - step) + 0.5);
    constexpr uint64_t kBar = 24;
    const uint64_t filled = last_ == 0 ? kBar : kBar * step / last_;
    char text[200];
    std::snprintf(text, sizeof text, "\r[%s%s] %llu/%llu  loss %.3f  %.0f tok/s  %llu:%02llu left ",
                  std::string(filled, '#').c_str(), std::string(kBar - filled, '.').c_str(),
                  static_cast<unsigned long long>(step), static_cast<unsigned long long>(last_),
                  loss, static_cast<double>(tokens) / seconds,
                  static_cast<unsigned long long>(left / 60),
                  static_cast<unsigned long long>(left % 60));
    out_ << text << std::flush;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::ostream& out_;
  uint64_t first_, last_;
  Clock::time_point start_;
};

class Run {
 public:
  Run(const RunOptions& options, const TrainingSubject& subject, const Documents& documents,
      const Documents* held_out)
      : options_(options),
        subject_(subject),
        trainer_(subject.trainer),
        stream_(documents, batch_options()) {
    make_directory(options.directory);
    start();
    if (held_out != nullptr)
      held_out_ = HeldOut(*held_out, batch_options(), options.directory + "/held_out.csv",
                          progress_.steps_done);
  }

  RunResult run(std::ostream& progress) {
    const uint64_t first = progress_.steps_done, all = options_.trainer.learning_rate.steps;
    uint64_t last = all;
    if (options_.stop_after != 0) last = std::min(all, first + options_.stop_after);
    LossCurve curve(options_.directory + "/loss.csv", first);
    ProgressLine line(progress, first, last);
    RunResult result;
    const double cpu = kernels::process_cpu_seconds();
    const uint64_t tokens = progress_.tokens;
    while (progress_.steps_done < last) {
      const StepReport report = step();
      result.loss = report.loss;
      curve.add({progress_.steps_done, progress_.tokens, report.loss, report.grad_norm,
                 report.rate, report.skipped});
      line.show(progress_.steps_done, progress_.tokens - tokens, report.loss);
      const auto due = [&](uint64_t every) {
        return progress_.steps_done == last || (every != 0 && progress_.steps_done % every == 0);
      };
      if (progress_.steps_done == last)
        result.tokens_per_core_second =
            static_cast<double>(progress_.tokens - tokens) / (kernels::process_cpu_seconds() - cpu);
      if (!held_out_.empty() && due(options_.evaluate_every)) {
        const HeldOut::Report held = held_out_.evaluate(trainer_, progress_.steps_done);
        result.held_out_loss = held.loss;
        curve.add(HeldOutPoint{progress_.tokens, held.loss});
        progress << "\nheld out, nats per token: " << held.text << "\n";
      }
      if (due(options_.checkpoint_every)) save(curve);
    }
    result.steps = progress_.steps_done;
    result.tokens = progress_.tokens;
    result.skipped = progress_.steps_skipped;
    return result;
  }

 private:
  BatchOptions batch_options() const {
    BatchOptions batch = options_.batch;
    batch.rows = options_.trainer.rows;
    batch.seed = options_.seed;
    return batch;
  }
  std::string checkpoint() const { return options_.directory + "/checkpoint.safetensors"; }

  void start() {
    progress_.setup = describe(subject_, options_);
    if (std::filesystem::exists(checkpoint())) {
      progress_ = load_training(checkpoint(), progress_.setup, trainer_);
      stream_.seek(progress_.text, progress_.examples);
      return;
    }
    subject_.begin();
    trainer_.resume(0, 0);
  }

  StepReport step() {
    std::vector<TrainingBatch> shards;
    for (size_t i = 0; i < options_.trainer.shards; ++i) shards.push_back(stream_.next());
    const StepReport report = trainer_.step(shards);
    progress_.tokens += report.tokens;
    progress_.steps_done = trainer_.steps_done();
    progress_.steps_skipped = trainer_.steps_skipped();
    progress_.text = stream_.text();
    progress_.examples = stream_.examples();
    return report;
  }

  void save(const LossCurve& curve) {
    save_training(checkpoint(), trainer_, progress_);
    curve.write_svg(options_.directory + "/loss.svg");
    subject_.write();
  }

  const RunOptions& options_;
  const TrainingSubject& subject_;
  Trainer& trainer_;
  BatchStream stream_;
  HeldOut held_out_;
  TrainingProgress progress_;
};

}  // namespace

RunResult run_training(const RunOptions& options, const TrainingSubject& subject,
                       const Documents& documents, const Documents* held_out,
                       std::ostream& progress) {
  return Run(options, subject, documents, held_out).run(progress);
}

}  // namespace runtime
