// Shared prefixes of prompts: the trie, what a trace keeps of it, and the same prompts in another
// order, against comparing prompts with each other.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "net/trace/agent_session.hpp"
#include "net/trace/block_hash.hpp"
#include "net/trace/json_place.hpp"
#include "net/trace/prefix_trie.hpp"

namespace {

using Prompt = std::vector<uint64_t>;

uint32_t common(const Prompt& a, const Prompt& b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<uint32_t>(end.first - a.begin());
}

// Prompts that grow, branch, repeat and end early, from a few ids.
std::vector<Prompt> random_prompts(std::mt19937& random, size_t count) {
  std::vector<Prompt> prompts;
  for (size_t i = 0; i < count; ++i) {
    Prompt prompt;
    if (!prompts.empty() && random() % 8 != 0) {
      prompt = prompts[random() % prompts.size()];
      prompt.resize(random() % 3 == 0 ? random() % (prompt.size() + 1) : prompt.size());
    }
    for (size_t more = random() % 5; more > 0; --more) prompt.push_back(random() % 3);
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

// With prompts in the given order: the longest prefix shared with an earlier one, and the first of
// those that share it.
net::SharedPrefix expected(const std::vector<Prompt>& prompts, const std::vector<uint32_t>& order,
                           size_t at) {
  net::SharedPrefix shared;
  for (size_t i = 0; i < at; ++i) {
    const uint32_t blocks = common(prompts[order[i]], prompts[order[at]]);
    if (blocks > shared.blocks) shared = {blocks, order[i]};
  }
  return shared;
}

net::Trace trace_of(const std::vector<Prompt>& prompts) {
  net::Trace trace;
  trace.has_prefixes = true;
  trace.block_tokens = 1;
  net::PrefixTrie trie;
  for (uint32_t i = 0; i < prompts.size(); ++i) {
    const auto shared = trie.insert(prompts[i], i);
    net::TraceRequest request;
    request.input_tokens = request.blocks = static_cast<uint32_t>(prompts[i].size());
    request.shared_blocks = shared.blocks;
    request.shared_with = shared.with;
    trace.requests.push_back(request);
  }
  return trace;
}

}  // namespace

TEST_CASE("The trie names the earliest prompt with the longest common prefix", "[net][property]") {
  const auto seed = GENERATE(range(0u, 30u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto prompts = random_prompts(random, 60);
  std::vector<uint32_t> order(prompts.size());
  std::iota(order.begin(), order.end(), 0u);
  net::PrefixTrie trie;
  for (uint32_t i = 0; i < prompts.size(); ++i) {
    const auto wanted = expected(prompts, order, i);
    const auto before = trie.find(prompts[i]);
    const auto shared = trie.insert(prompts[i], i);
    REQUIRE(shared.blocks == wanted.blocks);
    REQUIRE(shared.with == wanted.with);
    REQUIRE(before.blocks == wanted.blocks);
    REQUIRE(trie.find(prompts[i]).blocks == prompts[i].size());
  }
}

TEST_CASE("Block ids that a trace implies are equal exactly where the prompts are",
          "[net][property]") {
  const auto seed = GENERATE(range(0u, 10u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto prompts = random_prompts(random, 40);
  const auto trace = trace_of(prompts);
  std::vector<Prompt> ids;
  for (uint32_t i = 0; i < prompts.size(); ++i) {
    ids.push_back(net::block_ids(trace, i));
    REQUIRE(ids[i].size() == prompts[i].size());
    for (uint32_t j = 0; j < i; ++j)
      REQUIRE(common(ids[i], ids[j]) == common(prompts[i], prompts[j]));
  }
}

TEST_CASE("In another order prompts share what a trie fed in that order finds", "[net][property]") {
  const auto seed = GENERATE(range(0u, 30u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto prompts = random_prompts(random, 50);
  const auto trace = trace_of(prompts);
  std::vector<uint32_t> order(prompts.size());
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), random);
  const auto shared = net::share_in_order(trace.requests, order);
  for (size_t at = 0; at < order.size(); ++at) {
    const auto wanted = expected(prompts, order, at);
    CAPTURE(at);
    REQUIRE(shared[order[at]].blocks == wanted.blocks);
    REQUIRE(shared[order[at]].with == wanted.with);
  }
}

TEST_CASE("Block hashes are of whole blocks, and name all that is before them", "[net]") {
  const auto root = memory::root_prefix(7);
  const std::vector<runtime::TokenId> tokens{1, 2, 3, 4, 5, 6, 7};
  const auto hashes = net::block_hashes(tokens, 2, root);
  REQUIRE(hashes.size() == 3);
  CHECK(net::block_hashes(tokens, 8, root).empty());
  auto other = tokens;
  other[2] = 9;  // in the second block
  const auto changed = net::block_hashes(other, 2, root);
  CHECK(changed[0] == hashes[0]);
  CHECK(changed[1] != hashes[1]);
  CHECK(changed[2] != hashes[2]);
  CHECK(net::block_hashes(tokens, 2, memory::root_prefix(8))[0] != hashes[0]);
  for (const uint64_t hash : hashes) CHECK(hash < uint64_t{1} << 53);
}

TEST_CASE("A field is found in JSON text by its path", "[net]") {
  const std::string json =
      R"({"a": "x]}\"", "list": [1, {"b": [true, {"c": null}]}, "s"], "e": {}})";
  const auto at = [&](const char* path) { return json.substr(net::place_in_json(json, path), 4); };
  CHECK(at("a") == "\"x]}");
  CHECK(at("list[0]") == "1, {");
  CHECK(at("list[1].b[0]") == "true");
  CHECK(at("list[1].b[1].c") == "null");
  CHECK(at("list[2]") == "\"s\"]");
  CHECK(at("e.missing") == "{}}");
  CHECK(at("list[9]") == "[1, ");
  CHECK(at("nothing") == "{\"a\"");
}
