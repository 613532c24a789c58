#include "runtime/train/tasks/example_shares.hpp"

#include <charconv>
#include <stdexcept>
#include <string_view>

namespace runtime {

namespace {

constexpr int kMost = 1000;

// -1 unless the text is a number and nothing else.
int read_number(std::string_view text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

}  // namespace

ExampleShares parse_example_shares(const std::vector<std::string>& texts) {
  ExampleShares shares{};
  int sum = 0;
  for (const std::string& text : texts) {
    const auto equals = text.find('=');
    const auto source = find_text_source(text.substr(0, equals));
    const int share =
        equals == text.npos ? -1 : read_number(std::string_view(text).substr(equals + 1));
    if (!source || !is_conversation(*source) || share < 0 || share > kMost) {
      std::string problem = "\"";
      problem += text;
      problem += "\" is no share; expected NAME=SHARE, of 0 to 1000, with one of";
      for (size_t i = 0; i < kTextSourceNames.size(); ++i) {
        if (!is_conversation(static_cast<TextSource>(i))) continue;
        problem += ' ';
        problem += kTextSourceNames[i];
      }
      throw std::invalid_argument(problem);
    }
    shares[static_cast<size_t>(*source)] = share;
    sum += share;
  }
  if (sum == 0) throw std::invalid_argument("the shares of examples are all 0");
  return shares;
}

}  // namespace runtime
