#include "net/replay/calibration.hpp"

#include <algorithm>
#include <boost/json/object.hpp>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <limits>
#include <ostream>
#include <sstream>
#include <stdexcept>

#include "net/replay/server_facts.hpp"
#include "net/replay/step_probe.hpp"
#include "runtime/sim/roofline_fit.hpp"
#include "runtime/sim/step_model.hpp"

namespace net {

namespace json = boost::json;

namespace {

uint32_t count_in(const json::object& info, const char* key) {
  const json::value* value = info.if_contains(key);
  if (value == nullptr || !value->is_number())
    throw std::runtime_error(std::string("calibration: the server does not say its ") + key);
  return value->to_number<uint32_t>();
}

std::string text_in(const json::object& info, const char* key) {
  const json::value* value = info.if_contains(key);
  return value == nullptr || !value->is_string() ? "" : std::string(value->get_string().c_str());
}

// Bytes and operations of steps: what they cost on devices that know nothing else.
class StepWork {
 public:
  StepWork(const runtime::DeviceFile& base, const runtime::ModelGeometry& geometry,
           const runtime::StepOptions& options)
      : layers_(geometry.layer_count()),
        bytes_(device(base, {1, kNever, 0, 0, 0}), geometry, {}, options),
        flops_(device(base, {kNever, 1, 0, 0, 0}), geometry, {}, options) {}

  kernels::RooflineWork of(const runtime::StepShape& shape) const {
    return {bytes_.step_us(shape), flops_.step_us(shape), layers_,
            static_cast<double>(shape.tokens())};
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();  // a rate that is free
  static runtime::DeviceFile device(runtime::DeviceFile base,
                                    const kernels::RooflineParams& params) {
    base.params.roofline = params;
    return base;
  }
  double layers_;
  runtime::StepModel bytes_, flops_;
};

runtime::RooflineSample sample_of(const ProbeLoad& load, const StepWork& work,
                                  uint32_t chunk_tokens) {
  runtime::RooflineSample sample;
  sample.name = load.name();
  sample.is_request = load.is_prefill();
  if (!load.is_prefill()) {  // halfway through the answers
    runtime::StepShape shape;
    for (uint32_t i = 0; i < load.streams; ++i)
      shape.add_decode(load.prompt_tokens + load.output_tokens / 2);
    sample.steps.push_back(work.of(shape));
    return sample;
  }
  for (uint32_t at = 0; at < load.prompt_tokens; at += chunk_tokens) {
    runtime::StepShape shape;
    shape.add_prefill(at, std::min(chunk_tokens, load.prompt_tokens - at));
    sample.steps.push_back(work.of(shape));
  }
  return sample;
}

std::string this_month() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m", &parts);
  return text;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100);
  return text;
}

// The fitted constants with how they were found; the others as they were.
runtime::DeviceFile fitted(runtime::DeviceFile device, const runtime::RooflineFit& fit,
                           const std::string& name, const std::string& source) {
  device.name = name;
  device.version = 1;
  device.stack = this_month();
  device.path.clear();
  device.params.roofline = fit.params;
  const std::pair<std::string_view, double> values[] = {{"bytes_per_us", fit.params.bytes_per_us},
                                                        {"flops_per_us", fit.params.flops_per_us},
                                                        {"step_us", fit.params.step_us},
                                                        {"layer_us", fit.params.layer_us},
                                                        {"token_us", fit.params.token_us}};
  for (runtime::DeviceConstant& constant : device.constants) {
    for (const auto& [key, value] : values) {
      if (constant.key != key) continue;
      constant.value = value;
      constant.provenance = runtime::Provenance::kMeasured;
      constant.source = source;
    }
  }
  return device;
}

}  // namespace

Calibration calibrate(const runtime::DeviceFile& base, const CalibrationOptions& options,
                      std::ostream* progress) {
  if (!base.is_roofline) {
    throw std::invalid_argument(base.path +
                                ": form is \"kernels\"; only the numbers of a "
                                "\"roofline\" device are fitted");
  }
  const HttpTarget target = find_target(parse_address(options.server.url), options.server.api_key,
                                        std::chrono::minutes(10));
  const ServerFacts facts = ask_server(target, options.server);
  if (!facts.is_sluice)
    throw std::runtime_error("calibration: " + target.address.url() + " is no Sluice server");
  const std::string path =
      options.model.empty() ? text_in(facts.info, "model_path") : options.model;
  if (!std::filesystem::exists(path))
    throw std::runtime_error("calibration: there is no model " + path + " here; name it (--model)");
  const auto geometry = runtime::ModelGeometry::load(path);
  runtime::StepOptions step;
  const std::string kv = text_in(facts.info, "kv_cache_dtype");
  step.kv = kv == "bf16" ? runtime::KvType::kBf16 : runtime::KvType::kF32;
  const StepWork work(base, geometry, step);

  const auto loads = probe_loads(
      {count_in(facts.info, "context_length"), count_in(facts.info, "max_running_requests")});
  const uint32_t chunk = count_in(facts.info, "chunked_prefill_size");
  const std::vector<double> measured = probe_steps({target, facts.model, facts.vocabulary}, loads,
                                                   options.rounds, options.seed, progress);
  std::vector<runtime::RooflineSample> samples;
  for (size_t i = 0; i < loads.size(); ++i) {
    samples.push_back(sample_of(loads[i], work, chunk));
    samples.back().measured_us = measured[i];
  }
  const runtime::RooflineFit fit = runtime::fit_roofline(samples, base.params.roofline);

  Calibration out;
  out.request_us = fit.request_us;
  out.median_error = fit.median_error;
  out.worst_error = fit.worst_error;
  for (size_t i = 0; i < samples.size(); ++i)
    out.rows.push_back({samples[i].name, samples[i].measured_us, fit.predicted_us[i]});
  out.device = fitted(base, fit, options.name,
                      "sluice-replay calibrate: " + facts.model + ", " +
                          std::to_string(count_in(facts.info, "threads")) + " threads, kv " + kv +
                          "; " + std::to_string(samples.size()) + " loads, median error " +
                          percent(fit.median_error) + ", worst " + percent(fit.worst_error));
  return out;
}

std::string calibration_table(const Calibration& calibration) {
  std::string out;
  const auto line = [&](const char* load, const char* measured, const char* predicted,
                        const char* error) {
    char text[160];
    std::snprintf(text, sizeof text, "%-28s %12s %12s %9s\n", load, measured, predicted, error);
    out += text;
  };
  line("load", "measured us", "fitted us", "error");
  for (const CalibrationRow& row : calibration.rows) {
    char measured[32], predicted[32], error[32];
    std::snprintf(measured, sizeof measured, "%.1f", row.measured_us);
    std::snprintf(predicted, sizeof predicted, "%.1f", row.predicted_us);
    std::snprintf(error, sizeof error, "%+.1f %%", (row.predicted_us / row.measured_us - 1) * 100);
    line(row.load.c_str(), measured, predicted, error);
  }
  char rest[200];
  std::snprintf(rest, sizeof rest,
                "median error %.1f %%, worst %.1f %%; a request costs %.0f us beside its steps\n",
                calibration.median_error * 100, calibration.worst_error * 100,
                calibration.request_us);
  return out + rest;
}

std::string calibration_file(const Calibration& calibration) {
  std::string out =
      "# Measured by sluice-replay calibrate. Times to the first token of prompts that came alone, "
      "and between\n# tokens of sequences that decoded side by side, beside what the constants "
      "below say.\n#\n";
  std::istringstream table(calibration_table(calibration));
  for (std::string line; std::getline(table, line);) out += "# " + line + "\n";
  return out + runtime::to_toml(calibration.device);
}

}  // namespace net
