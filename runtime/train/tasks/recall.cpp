#include "runtime/train/tasks/recall.hpp"

#include <algorithm>

namespace runtime {

namespace {

class RecallWriter {
 public:
  RecallWriter(TaskRandom& random, uint32_t ranks) : random_(random), ranks_(ranks) {}

  // Fresh random tokens.
  std::vector<uint16_t> some(size_t count) {
    std::vector<uint16_t> out(count);
    for (auto& token : out) token = static_cast<uint16_t>(random_.below(ranks_));
    return out;
  }
  // The first `given` tokens cannot be known.
  void write(const std::vector<uint16_t>& tokens, size_t given) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      text_.tokens.push_back(tokens[i]);
      text_.mask.push_back(i < given ? 0 : 1);
    }
  }

  // A string, and then it again, and again.
  RecallText repeated(size_t length) {
    const auto times = static_cast<size_t>(random_.between(2, 4));
    const auto string = some(2 + random_.below(length / times - 1));
    write(string, string.size());
    for (size_t i = 1; i < times; ++i) write(string, i == 1 ? 1 : 0);
    return std::move(text_);
  }

  // Keys with their values, then each again, in another order: a key tells its value.
  RecallText pairs(size_t length) {
    const auto key_size = static_cast<size_t>(random_.between(1, 3));
    const auto value_size = static_cast<size_t>(random_.between(1, 3));
    const bool is_marked = random_.percent(50);  // as in "key: value\n"
    const auto between = some(is_marked ? 1 : 0), after = some(is_marked ? 1 : 0);
    const size_t size = key_size + value_size + between.size() + after.size();
    std::vector<std::vector<uint16_t>> lines(2 + random_.below(length / size / 2 - 1));
    for (auto& line : lines) {
      line = some(key_size);
      line.insert(line.end(), between.begin(), between.end());
      for (const uint16_t token : some(value_size)) line.push_back(token);
      line.insert(line.end(), after.begin(), after.end());
      write(line, line.size());
    }
    random_.shuffle(lines);
    for (const auto& line : lines) write(line, key_size);
    return std::move(text_);
  }

 private:
  TaskRandom& random_;
  uint32_t ranks_;
  RecallText text_;
};

}  // namespace

RecallText make_recall(TaskRandom& random, uint32_t ranks, size_t length) {
  VERIFY(ranks > 0 && ranks <= 1u << 16 && length >= 32);
  RecallWriter writer(random, ranks);
  return random.percent(50) ? writer.repeated(length) : writer.pairs(length);
}

}  // namespace runtime
