#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <vector>

#include "net/replay/prompt_source.hpp"

namespace {

using runtime::TokenId;

// Requests whose prompts begin with those of earlier ones, at random.
net::Trace random_tree(uint64_t seed, uint32_t requests, uint32_t block_tokens) {
  std::mt19937_64 random(seed);
  net::Trace trace;
  trace.block_tokens = block_tokens;
  trace.has_prefixes = true;
  trace.sessions.push_back({"s", 0, requests});
  for (uint32_t i = 0; i < requests; ++i) {
    net::TraceRequest request;
    if (i > 0 && random() % 4 != 0) {
      request.shared_with = static_cast<uint32_t>(random() % i);
      request.shared_blocks =
          static_cast<uint32_t>(random() % (trace.requests[*request.shared_with].blocks + 1));
    }
    request.blocks = request.shared_blocks + static_cast<uint32_t>(random() % 5);
    request.input_tokens =
        request.blocks * block_tokens + static_cast<uint32_t>(random() % block_tokens);
    request.output_tokens = static_cast<uint32_t>(random() % 100);
    trace.requests.push_back(request);
  }
  return trace;
}

size_t common(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return static_cast<size_t>(end - a.begin());
}

}  // namespace

TEST_CASE("Prompts share the blocks that the trace says, and not one more", "[replay]") {
  const auto trace = random_tree(3, 60, 16);
  for (const uint32_t block : {16u, 4u}) {
    net::PromptOptions options;
    options.block_tokens = block;
    options.vocabulary = 512;
    const net::PromptSource source(trace, options);
    for (uint32_t a = 0; a < trace.requests.size(); ++a) {
      const auto prompt = source.prompt(a);
      REQUIRE(prompt.size() == source.prompt_tokens(a));
      CHECK(std::all_of(prompt.begin(), prompt.end(), [](TokenId t) { return t >= 0 && t < 512; }));
      const auto ids = net::block_ids(trace, a);
      for (uint32_t b = 0; b < a; ++b) {
        const auto other = net::block_ids(trace, b);
        const auto end = std::mismatch(ids.begin(), ids.end(), other.begin(), other.end()).first;
        const auto blocks = static_cast<size_t>(end - ids.begin());
        CHECK(common(prompt, source.prompt(b)) / block == blocks);
      }
    }
  }
}

TEST_CASE("A prompt has the recorded length, or whole blocks where these count", "[replay]") {
  net::Trace trace;
  trace.block_tokens = 512;
  trace.has_prefixes = true;
  trace.sessions.push_back({"s", 0, 3});
  net::TraceRequest partial, tail, none;
  partial.blocks = 2, partial.input_tokens = 600, partial.output_tokens = 10;
  tail.blocks = 1, tail.input_tokens = 700;
  trace.requests = {partial, tail, none};
  net::PromptOptions options;
  CHECK(net::PromptSource(trace, options).prompt(0).size() == 600);
  CHECK(net::PromptSource(trace, options).prompt(1).size() == 700);
  CHECK(net::PromptSource(trace, options).prompt(2).size() == 1);  // no prompt is empty
  CHECK(net::PromptSource(trace, options).output_tokens(1) == 1);
  options.whole_blocks = true;
  CHECK(net::PromptSource(trace, options).prompt(0).size() == 1024);
  CHECK(net::PromptSource(trace, options).output_tokens(1) == 513);
  CHECK(net::PromptSource(trace, options).prompt(1).size() == 700);
  CHECK(net::PromptSource(trace, options).prompt(2).size() == 1);
  options.whole_blocks = false;
  options.block_tokens = 64;
  CHECK(net::PromptSource(trace, options).prompt(0).size() == 75);
  CHECK(net::PromptSource(trace, options).prompt(1).size() == 64 + 23);
  CHECK(net::PromptSource(trace, options).output_tokens(0) == 1);
  options.block_tokens = 1024;
  CHECK_THROWS_WITH(net::PromptSource(trace, options),
                    "block tokens: 1024 are more than the trace's 512; blocks can be made "
                    "smaller, not larger");
}

TEST_CASE("Answers and other seeds are tokens of their own", "[replay]") {
  const auto trace = random_tree(4, 8, 16);
  net::PromptOptions options;
  const net::PromptSource source(trace, options);
  options.seed = 2;
  const net::PromptSource other(trace, options);
  std::set<TokenId> answers;
  for (uint32_t i = 0; i < 8; ++i) answers.insert(source.answer(i, 5));
  CHECK(answers.size() == 8);
  for (uint32_t i = 0; i < 8; ++i) {
    if (source.prompt_tokens(i) > 1) CHECK(common(source.prompt(i), other.prompt(i)) == 0);
  }
}
