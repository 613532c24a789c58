#include "runtime/train/training_worker.hpp"

#include <algorithm>

#include "kernels/base/verify.hpp"

namespace runtime {

namespace {

constexpr size_t kHeadRows = 256;  // rows whose logits lie in memory at a time

kernels::Grid<const float> grid(const RowBuffer& rows) {
  return {rows.rows().data, rows.rows().ld};
}

}  // namespace

TrainingWorker::TrainingWorker(const ModelConfig& config, const ModelOptions& options)
    : config_(config),
      options_(options),
      ops_(kernels::make_cpu_ops(1)),
      gradient_ops_(kernels::make_cpu_gradient_ops()),
      work_(config, options.max_rows, Workspace::Keep::kLayers),
      backward_(config, *gradient_ops_),
      embedded_(options.max_rows, config.hidden),
      logits_(std::min<size_t>(kHeadRows, options.max_rows), config.vocab),
      dhead_(options.max_rows, config.hidden),
      dwanted_(options.max_rows, config.hidden) {
  work_.timer = &timer_;
}

TrainingWorker::Result TrainingWorker::train(const HybridNetwork& network,
                                             const NetworkParameters<float>& parameters,
                                             const TrainingBatch& batch) {
  forward(network, batch, nullptr);
  return backward(network, parameters, batch, nullptr);
}

TrainingWorker::Result TrainingWorker::train(const HybridNetwork& network,
                                             const NetworkParameters<float>& parameters,
                                             const TrainingBatch& batch, const Adapter& adapter) {
  forward(network, batch, &adapter.packed);
  return backward(network, parameters, batch, &adapter.parameters);
}

TrainingWorker::Result TrainingWorker::backward(const HybridNetwork& network,
                                                const NetworkParameters<float>& parameters,
                                                const TrainingBatch& batch,
                                                const AdapterParameters<float>* adapter) {
  const Result result = head(network, &parameters, batch);
  const kernels::Grid<float> dhead{dhead_.rows().data, dhead_.rows().ld};
  const kernels::Grid<float> dwanted{dwanted_.rows().data, dwanted_.rows().ld};
  for (size_t row = 0, next = 0; row < batch.rows(); ++row) {
    if (next < wanted_.size() && wanted_[next] == row) {
      std::copy_n(dwanted.row(next++), config_.hidden, dhead.row(row));
    } else {
      std::fill_n(dhead.row(row), config_.hidden, 0.0f);
    }
  }
  backward_.run(tape(batch, parameters.embedding.value), parameters, dhead, &timer_,
                adapter);
  return result;
}

TrainingWorker::Result TrainingWorker::evaluate(const HybridNetwork& network,
                                                const TrainingBatch& batch,
                                                const NetworkAdapter* adapter) {
  forward(network, batch, adapter);
  return head(network, nullptr, batch);
}

std::vector<uint32_t> TrainingWorker::expert_load(uint32_t layer) {
  std::vector<uint32_t> load(config_.ffn.experts, 0);
  if (!config_.is_moe(layer)) return load;
  for (const uint32_t expert : work_.ffn(layer).routing.expert) ++load[expert];
  return load;
}

void TrainingWorker::reserve_cache(const CacheGeometry& geometry, const TrainingBatch& batch) {
  constexpr size_t kAlignment = 64;
  page_table_.clear();
  segments_.clear();
  for (const kernels::Sequence& sequence : batch.sequences) {
    kernels::Segment segment;
    segment.row_begin = static_cast<uint32_t>(sequence.begin);
    segment.row_count = static_cast<uint32_t>(sequence.count);
    segment.slot = static_cast<uint32_t>(segments_.size());
    segment.page_begin = static_cast<uint32_t>(page_table_.size());
    const size_t pages = (sequence.count + options_.page_tokens - 1) / options_.page_tokens;
    for (size_t i = 0; i < pages; ++i)
      page_table_.push_back(static_cast<uint32_t>(page_table_.size()));
    segments_.push_back(segment);
  }
  const auto reserve = [](std::vector<float>& memory, size_t bytes) {
    const size_t floats = (bytes + kAlignment) / sizeof(float) + 1;
    if (memory.size() < floats) memory.resize(floats);
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    return reinterpret_cast<std::byte*>(memory.data()) +
           (kAlignment - address % kAlignment) % kAlignment;
  };
  memory_.state_base = reserve(states_, geometry.state_bytes * segments_.size());
  memory_.state_stride = geometry.state_bytes;
  std::fill_n(memory_.state_base, geometry.state_bytes * segments_.size(), std::byte{0});
  memory_.page_base = reserve(pages_, geometry.page_bytes * page_table_.size());
  memory_.page_stride = geometry.page_bytes;
}

void TrainingWorker::forward(const HybridNetwork& network, const TrainingBatch& batch,
                             const NetworkAdapter* adapter) {
  VERIFY(batch.rows() > 0 && batch.rows() <= options_.max_rows);
  reserve_cache(network.geometry(), batch);
  wanted_.clear();
  for (size_t row = 0; row < batch.rows(); ++row)
    if (batch.weights[row] != 0) wanted_.push_back(static_cast<uint32_t>(row));
  ForwardBatch rows;
  rows.tokens = batch.tokens;
  rows.view = {segments_, page_table_, static_cast<uint32_t>(batch.rows())};
  rows.logit_rows = wanted_;
  network.forward(*ops_, rows, memory_, work_, adapter);
}

TrainingWorker::Result TrainingWorker::head(const HybridNetwork& network,
                                            const NetworkParameters<float>* parameters,
                                            const TrainingBatch& batch) {
  const size_t count = wanted_.size();
  wanted_target_.clear();
  wanted_weight_.clear();
  wanted_loss_.assign(count, 0);
  for (const uint32_t row : wanted_) {
    wanted_target_.push_back(batch.targets[row]);
    wanted_weight_.push_back(batch.weights[row]);
  }
  Result result;
  timer_.start();
  const auto logits = logits_.rows();
  for (size_t first = 0; first < count; first += kHeadRows) {
    const size_t rows = std::min(kHeadRows, count - first);
    network.logits(*ops_, work_, first, rows, logits.data);
    kernels::CrossEntropyGrad<float> loss;
    loss.rows = rows;
    loss.width = config_.vocab;
    loss.logits = {logits.data, config_.vocab};
    loss.target = std::span(wanted_target_).subspan(first, rows);
    loss.weight = std::span(wanted_weight_).subspan(first, rows);
    loss.loss = wanted_loss_.data() + first;
    if (parameters == nullptr) {
      for (size_t i = 0; i < rows; ++i) {
        const auto row = std::span(logits.data + i * config_.vocab, config_.vocab);
        const auto best = std::max_element(row.begin(), row.end()) - row.begin();
        if (best == loss.target[i]) result.right += static_cast<double>(loss.weight[i]);
      }
      result.loss += gradient_ops_->cross_entropy(loss);
    } else {
      result.loss += head_backward<float>(
          *gradient_ops_, config_, loss, grid(work_.head).from(first), parameters->head,
          kernels::Grid<float>{dwanted_.rows().data, dwanted_.rows().ld}.from(first));
    }
  }
  timer_.lap(NetworkPart::kHead);
  row_loss_.assign(batch.rows(), 0);
  for (size_t i = 0; i < count; ++i) row_loss_[wanted_[i]] = wanted_loss_[i];
  result.row_loss = row_loss_;
  return result;
}

// The stream's own sums are gone: it adds in place. They start from the embedding again.
Tape<float> TrainingWorker::tape(const TrainingBatch& batch, const float* embedding) {
  for (size_t row = 0; row < batch.rows(); ++row) {
    std::copy_n(embedding + static_cast<size_t>(batch.tokens[row]) * config_.hidden,
                config_.hidden, embedded_.rows().data + row * embedded_.rows().ld);
  }
  Tape<float> tape;
  tape.rows = batch.rows();
  tape.tokens = batch.tokens;
  tape.sequences = batch.sequences;
  tape.embedded = grid(embedded_);
  for (uint32_t index = 0; index < config_.layer_count(); ++index) {
    LayerTape<float> layer;
    const auto& attention = work_.sublayer(2 * size_t{index});
    const auto& ffn = work_.sublayer(2 * size_t{index} + 1);
    layer.attention_in = grid(attention.normed);
    layer.attention_out = grid(attention.out);
    layer.ffn_in = grid(ffn.normed);
    layer.ffn_out = grid(ffn.out);
    const KdaScratch& kda = work_.kda(index);
    layer.kda = {grid(kda.in), grid(kda.decay), grid(kda.gate), grid(kda.out)};
    const MlaScratch& mla = work_.mla(index);
    layer.mla = {grid(mla.in), grid(mla.bottleneck), grid(mla.q), grid(mla.out)};
    const FfnScratch& scratch = work_.ffn(index);
    layer.ffn = {grid(scratch.in),
                 grid(scratch.inner),
                 grid(scratch.mixed),
                 grid(scratch.normed),
                 config_.ffn.top_k,
                 scratch.routing.expert,
                 scratch.routing.weight};
    tape.layers.push_back(layer);
  }
  tape.head = grid(work_.head);
  return tape;
}

}  // namespace runtime
