#include "runtime/sim/trim_panel.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <vector>

#include "kernels/base/verify.hpp"
#include "runtime/counter_random.hpp"
#include "runtime/sim/draft_draws.hpp"

namespace runtime {
namespace {

struct Draft {
  std::array<double, kDraftTokens> confidence{}, survival{};  // of each alone; of all up to it
};

class Panel {
 public:
  Panel(const StepModel& model, const TrimPanel& panel)
      : model_(model), panel_(panel), random_(panel.seed, "trim panel") {
    VERIFY(panel.requests > 0 && panel.steps > 0);
    VERIFY(panel.acceptance.spread > 0);
    VERIFY(panel.acceptance.mean > 0 && panel.acceptance.mean < 1);
  }

  TrimGain run() {
    std::vector<Draft> last = draw();
    double full_tokens = 0, trimmed_tokens = 0, full_us = 0, trimmed_us = 0;
    for (uint32_t step = 0; step < panel_.steps; ++step) {
      std::vector<Draft> drafts = draw();
      const size_t budget = best_budget(panel_.stale_budget ? last : drafts);
      const auto kept = keep(drafts, budget);
      for (size_t r = 0; r < drafts.size(); ++r) {
        const uint32_t accepted = accept(drafts[r]);
        full_tokens += 1 + accepted;
        trimmed_tokens += 1 + std::min(accepted, kept[r]);
      }
      full_us += step_us(panel_.requests * (1 + kDraftTokens));
      trimmed_us += step_us(panel_.requests + static_cast<uint32_t>(budget));
      last = std::move(drafts);
    }
    const double rows = static_cast<double>(panel_.steps) * panel_.requests;
    return {(trimmed_tokens / trimmed_us) / (full_tokens / full_us) - 1, full_tokens / rows,
            trimmed_tokens / rows};
  }

 private:
  double uniform() { return random_.uniform(drawn_++); }

  std::vector<Draft> draw() {
    const auto& [mean, spread] = panel_.acceptance;
    std::vector<Draft> drafts(panel_.requests);
    for (Draft& draft : drafts) {
      double survival = 1;
      for (uint32_t i = 0; i < kDraftTokens; ++i) {
        draft.confidence[i] =
            draw_beta(spread * mean, spread * (1 - mean), [this] { return uniform(); });
        survival *= draft.confidence[i];
        draft.survival[i] = survival;
      }
    }
    return drafts;
  }

  uint32_t accept(const Draft& draft) {
    uint32_t accepted = 0;
    while (accepted < kDraftTokens && uniform() < draft.confidence[accepted]) ++accepted;
    return accepted;
  }

  double step_us(uint32_t tokens) {
    const auto known = step_us_.find(tokens);
    if (known != step_us_.end()) return known->second;
    StepShape shape;
    shape.decode_rows = panel_.requests;
    shape.decode_tokens = tokens;
    shape.decode_context = panel_.requests * panel_.context + tokens;
    const double us = model_.step_us(shape) + model_.draft_us(shape);
    step_us_.emplace(tokens, us);
    return us;
  }

  // So many drafts, the likeliest first, that tokens per second are most.
  size_t best_budget(const std::vector<Draft>& drafts) {
    std::vector<double> survivals;
    for (const Draft& draft : drafts) {
      survivals.insert(survivals.end(), draft.survival.begin(), draft.survival.end());
    }
    std::sort(survivals.begin(), survivals.end(), std::greater<>());
    double tokens = panel_.requests, best = tokens / step_us(panel_.requests);
    size_t budget = 0;
    for (size_t i = 0; i < survivals.size(); ++i) {
      tokens += survivals[i];
      const double rate = tokens / step_us(panel_.requests + static_cast<uint32_t>(i) + 1);
      if (rate > best) {
        best = rate;
        budget = i + 1;
      }
    }
    return budget;
  }

  // Drafts of each request among the `budget` likeliest: a prefix, as survival only falls.
  static std::vector<uint32_t> keep(const std::vector<Draft>& drafts, size_t budget) {
    struct Candidate {
      double survival = 0;
      uint32_t position = 0;
      size_t request = 0;
    };
    std::vector<Candidate> all;
    for (size_t r = 0; r < drafts.size(); ++r) {
      for (uint32_t i = 0; i < kDraftTokens; ++i) all.push_back({drafts[r].survival[i], i, r});
    }
    std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
      if (a.survival != b.survival) return a.survival > b.survival;
      return a.position != b.position ? a.position < b.position : a.request < b.request;
    });
    std::vector<uint32_t> kept(drafts.size(), 0);
    for (size_t i = 0; i < budget; ++i) ++kept[all[i].request];
    return kept;
  }

  const StepModel& model_;
  const TrimPanel& panel_;
  CounterRandom random_;
  uint64_t drawn_ = 0;
  std::map<uint32_t, double> step_us_;
};

double length_at(double mean, uint32_t drafts) {
  double length = 1, survival = 1;
  for (uint32_t i = 0; i < drafts; ++i) length += survival *= mean;
  return length;
}

}  // namespace

double acceptance_mean(double length, uint32_t drafts) {
  VERIFY(length > 1 && length < 1.0 + drafts);
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (length_at(middle, drafts) < length ? low : high) = middle;
  }
  return (low + high) / 2;
}

TrimGain trim_gain(const StepModel& model, const TrimPanel& panel) {
  return Panel(model, panel).run();
}

}  // namespace runtime
