#include "runtime/stop_strings.hpp"

#include <catch2/catch.hpp>
#include <random>

namespace {

struct Cut {
  std::string text;
  std::optional<std::string> match;
};

// The definition, word by word: the first end at which some stop string ends; the longest of those.
Cut cut_whole(const std::string& text, const std::vector<std::string>& stops, bool include) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::optional<std::string> best;
    for (const std::string& stop : stops) {
      if (stop.empty() || stop.size() > end ||
          text.compare(end - stop.size(), stop.size(), stop) != 0)
        continue;
      if (!best || stop.size() > best->size()) best = stop;
    }
    if (best) return {text.substr(0, include ? end : end - best->size()), best};
  }
  return {text, std::nullopt};
}

std::string random_text(std::mt19937& rng, size_t length) {
  std::string text;
  for (size_t i = 0; i < length; ++i) text += static_cast<char>('a' + rng() % 2);
  return text;
}

}  // namespace

TEST_CASE("Streamed text is the whole text cut at the first stop string", "[actors][property]") {
  const auto seed = GENERATE(range(0u, 300u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  const bool include = rng() % 2 == 0;
  std::vector<std::string> stops(rng() % 4);
  for (auto& stop : stops) stop = random_text(rng, rng() % 6);
  const std::string text = random_text(rng, rng() % 40);

  runtime::StopStrings streamed(stops, include);
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const size_t length = std::min(text.size() - at, size_t{rng() % 4});
    shown += streamed.push(text.substr(at, length));
    at += length;
    REQUIRE(text.compare(0, shown.size(), shown) == 0);  // nothing shown is ever taken back
  }
  shown += streamed.finish();

  const Cut expected = cut_whole(text, stops, include);
  CAPTURE(text, stops, include);
  CHECK(shown == expected.text);
  CHECK(streamed.matched() == expected.match);
}

TEST_CASE("Only what may still become a stop string is held back", "[actors]") {
  runtime::StopStrings stops({"\n\nUser:"}, false);
  CHECK(stops.push("Hello\n") == "Hello");
  CHECK(stops.push("\nUs") == "");
  CHECK(stops.push("ual") == "\n\nUsual");
  CHECK(stops.finish() == "");
}

TEST_CASE("No match spans the end of one kind of text", "[actors]") {
  runtime::StopStrings stops({"ab"}, false);
  CHECK(stops.push("xa") == "x");
  CHECK(stops.finish() == "a");
  CHECK(stops.push("b") == "b");
  CHECK_FALSE(stops.matched());
}
