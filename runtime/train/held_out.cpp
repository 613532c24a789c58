#include "runtime/train/held_out.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace runtime {

namespace {

constexpr size_t kRows = 8192;  // of a source, at most
constexpr const char* kHeader = "step,source,tokens,nats,right";

// The documents of one source.
class OneSource final : public Documents {
 public:
  OneSource(const Documents& all, TextSource source) : all_(all) {
    for (size_t i = 0; i < all.count(); ++i)
      if (all.document(i).source == source) indices_.push_back(i);
  }
  size_t count() const override { return indices_.size(); }
  Document document(size_t index) const override { return all_.document(indices_[index]); }

 private:
  const Documents& all_;
  std::vector<size_t> indices_;
};

void write_lines(const std::string& path, const std::string& lines, std::ios::openmode mode) {
  std::ofstream out(path, mode);
  out << lines;
  out.close();
  if (!out) throw std::runtime_error(path + ": cannot be written");
}

void drop_later_lines(const std::string& path, uint64_t steps) {
  std::string kept = std::string(kHeader) + "\n";
  std::ifstream in(path);
  std::string row;
  std::getline(in, row);
  while (steps != 0 && std::getline(in, row)) {
    char* end = nullptr;
    const uint64_t step = std::strtoull(row.c_str(), &end, 10);
    if (end == row.c_str() || *end != ',')
      throw std::runtime_error(path + ": \"" + row + "\" is not a line of " + kHeader);
    if (step <= steps) kept += row + "\n";
  }
  in.close();
  write_lines(path, kept, std::ios::trunc);
}

}  // namespace

HeldOut::HeldOut(const Documents& documents, const BatchOptions& options, std::string csv_path,
                 uint64_t steps)
    : csv_path_(std::move(csv_path)) {
  for (size_t i = 0; i < kTextSourceNames.size(); ++i) {
    const auto source = static_cast<TextSource>(i);
    const OneSource part(documents, source);
    if (part.count() == 0) continue;
    auto batches = cut_in_order(part, options, kRows);
    std::erase_if(batches, [](const TrainingBatch& batch) { return batch.rows() == 0; });
    parts_.push_back({source, std::move(batches)});
  }
  drop_later_lines(csv_path_, steps);
}

HeldOut::Report HeldOut::evaluate(Trainer& trainer, uint64_t step) {
  Report report;
  std::string lines;
  Trainer::Evaluation text, all;
  for (const Part& part : parts_) {
    const auto name = std::string(text_source_name(part.source));
    const Trainer::Evaluation one = trainer.evaluate(part.batches);
    char line[160];
    std::snprintf(line, sizeof line, "%" PRIu64 ",%s,%.0f,%.6f,%.4f\n", step, name.c_str(),
                  one.tokens, one.loss, one.right);
    lines += line;
    std::snprintf(line, sizeof line, "%s%s %.2f (%.1f %% right)", report.text.empty() ? "" : ", ",
                  name.c_str(), one.loss, 100 * one.right);
    report.text += line;
    for (auto* sum : {&all, is_example(part.source) ? nullptr : &text}) {
      if (sum == nullptr) continue;
      sum->loss += one.loss * one.tokens;
      sum->tokens += one.tokens;
    }
  }
  const auto& counted = text.tokens > 0 ? text : all;
  report.loss = counted.tokens > 0 ? counted.loss / counted.tokens : 0;
  write_lines(csv_path_, lines, std::ios::app);
  return report;
}

}  // namespace runtime
