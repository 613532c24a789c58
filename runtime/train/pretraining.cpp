#include "runtime/train/pretraining.hpp"

#include <boost/json/serialize.hpp>

#include "runtime/checkpoint_presets.hpp"
#include "runtime/train/network_trainer.hpp"
#include "runtime/train/weights_export.hpp"
#include "runtime/weights.hpp"

namespace runtime {

namespace {

std::string start_name(ParameterStart start) {
  return start == ParameterStart::kLookUp ? "look-up" : "scratch";
}

}  // namespace

RunResult pretrain(const PretrainingOptions& options, const Documents& documents,
                   const Documents* held_out, std::ostream& progress) {
  const ModelConfig config = ModelConfig::parse(
      boost::json::serialize(preset_config(options.preset)), "preset " + options.preset);
  ParameterStore parameters(config, options.quantised);
  NetworkTrainer trainer(config, parameters, options.trainer);
  TrainingSubject subject{trainer, options.preset, {}, {}};
  if (options.quantised) subject.setup += " mxfp4";
  subject.setup += " from " + (options.initial.empty() ? start_name(options.start) : options.initial);
  subject.begin = [&] {
    if (options.initial.empty()) {
      parameters.initialise(options.seed, options.start);
    } else {
      parameters.load(WeightsFile::load(options.initial));
    }
  };
  subject.write = [&] {
    export_weights({options.preset, options.tokenizer, options.directory + "/model"}, parameters);
  };
  return run_training(options, subject, documents, held_out, progress);
}

}  // namespace runtime
