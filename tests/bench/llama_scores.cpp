// What llama.cpp's library thinks of token sequences, for llama_same.py. Built by hand against a
// llama.cpp build (README.md, "Against llama.cpp"); no part of this repository's own build.
//   llama_scores FILE.gguf < SEQUENCES    (ids, a sequence a line)
// prints for each sequence a line of "argmax:log-probability of the id that follows", one for each
// id but the last. The cache is fp32, so that only the file's weights and its products round.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "llama.h"

namespace {

constexpr uint32_t kMaxTokens = 2048;  // of a sequence

std::vector<llama_token> read_ids(const std::string& line) {
  std::istringstream in(line);
  std::vector<llama_token> ids;
  for (llama_token id = 0; in >> id;) ids.push_back(id);
  if (ids.empty() || ids.size() > kMaxTokens)
    throw std::runtime_error("a line needs 1 to " + std::to_string(kMaxTokens) + " token ids");
  return ids;
}

void print_score(const float* logits, int vocabulary, llama_token next) {
  const float* const best = std::max_element(logits, logits + vocabulary);
  double sum = 0;
  for (int id = 0; id < vocabulary; ++id) sum += std::exp(double{logits[id]} - double{*best});
  const double score = double{logits[next]} - double{*best} - std::log(sum);
  std::printf("%d:%.6f ", static_cast<int>(best - logits), score);
}

void score(llama_model* model, const std::vector<llama_token>& ids) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = params.n_batch = kMaxTokens;
  params.type_k = params.type_v = GGML_TYPE_F32;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  const std::unique_ptr<llama_context, decltype(&llama_free)> context(
      llama_init_from_model(model, params), &llama_free);
  if (!context) throw std::runtime_error("no context for this model");
  llama_batch batch = llama_batch_init(static_cast<int32_t>(ids.size()), 0, 1);
  for (const llama_token id : ids) {
    const int32_t row = batch.n_tokens++;
    batch.token[row] = id;
    batch.pos[row] = row;
    batch.n_seq_id[row] = 1;
    batch.seq_id[row][0] = 0;
    batch.logits[row] = 1;
  }
  const int32_t failed = llama_decode(context.get(), batch);
  llama_batch_free(batch);
  if (failed != 0) throw std::runtime_error("llama_decode answered " + std::to_string(failed));
  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
  for (size_t row = 0; row + 1 < ids.size(); ++row)
    print_score(llama_get_logits_ith(context.get(), static_cast<int32_t>(row)), vocabulary,
                ids[row + 1]);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("usage: llama_scores FILE.gguf < SEQUENCES");
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  const std::unique_ptr<llama_model, decltype(&llama_model_free)> model(
      llama_model_load_from_file(argv[1], llama_model_default_params()), &llama_model_free);
  if (!model) throw std::runtime_error(std::string(argv[1]) + ": llama.cpp does not load it");
  for (std::string line; std::getline(std::cin, line);) score(model.get(), read_ids(line));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "llama_scores: %s\n", error.what());
  return 1;
}
