#include "actors/text_encoder.hpp"

#include <catch2/catch.hpp>

#include "tests/support/actor_lab.hpp"

using actors::ask;
using actors::TextEncoder;
using runtime::GenerateRequest;

namespace {

const actors::TextLimits kLimits{512, 20, {258}};

GenerateRequest with_ids(std::vector<runtime::TokenId> ids) {
  GenerateRequest request = ask("");
  request.prompts = {runtime::Prompt(std::move(ids))};
  return request;
}

std::string message_of(const TextEncoder& encoder, GenerateRequest request) {
  const auto encoded = encoder.encode(request);
  return encoded ? "accepted" : encoded.error().message;
}

}  // namespace

TEST_CASE("Text and ids become prompts with their output limits", "[actors]") {
  const TextEncoder encoder(support::byte_tokenizer(), kLimits);
  auto request = ask("hello", 3);
  request.prompts.push_back(std::vector<runtime::TokenId>{1, 2, 3});
  const auto encoded = encoder.encode(request);
  REQUIRE(encoded.has_value());
  CHECK(encoded->prompts[0] == std::vector<runtime::TokenId>{'h', 'e', 'l', 'l', 'o'});
  CHECK(encoded->prompts[1] == std::vector<runtime::TokenId>{1, 2, 3});
  CHECK(encoded->max_tokens == std::vector<uint32_t>{3, 3});
  CHECK(request.sampling.stop_ids == std::vector<runtime::TokenId>{258});

  auto open_ended = ask("hello");
  CHECK(encoder.encode(open_ended)->max_tokens == std::vector<uint32_t>{15});
  open_ended.default_max_tokens = 4;
  CHECK(encoder.encode(open_ended)->max_tokens == std::vector<uint32_t>{4});
  open_ended.default_max_tokens = 16;  // more than fits: never the client's fault
  CHECK(encoder.encode(open_ended)->max_tokens == std::vector<uint32_t>{15});
  auto no_end = ask("hello");
  no_end.sampling.ignore_eos = true;
  REQUIRE(encoder.encode(no_end).has_value());
  CHECK(no_end.sampling.stop_ids.empty());
}

TEST_CASE("What the model cannot take is refused by field", "[actors]") {
  const TextEncoder encoder(support::byte_tokenizer(), kLimits);
  CHECK(message_of(encoder, with_ids({})) == "prompt: must hold at least one token");
  CHECK(message_of(encoder, with_ids({1, 512})) ==
        "prompt[1] must be a token id between 0 and 511, got 512");
  CHECK(message_of(encoder, with_ids({-1})) ==
        "prompt[0] must be a token id between 0 and 511, got -1");
  auto lists = with_ids({1});
  lists.prompts.push_back(std::vector<runtime::TokenId>{2, 3, 600});
  CHECK(message_of(encoder, lists) == "prompt[1][2] must be a token id between 0 and 511, got 600");
  CHECK(message_of(encoder, ask("hello", 16)) ==
        "max_tokens: this server's context is 20 tokens, the prompt has 5 and max_tokens is 16; "
        "ask for at most 15");
  CHECK(message_of(encoder, ask("hello, hello, hello!")) ==
        "prompt: this server's context is 20 tokens, the prompt has 20 and leaves no room for "
        "output");
  CHECK(message_of(encoder, ask("hello, hello, hello!", 0)) == "accepted");
  auto biased = ask("hello");
  biased.sampling.logit_bias = {{512, 1.0f}};
  CHECK(message_of(encoder, biased) ==
        "logit_bias must have token ids between 0 and 511 as its keys, got 512");
  auto stopped = ask("hello");
  stopped.sampling.stop_ids = {511, 512};
  CHECK(message_of(encoder, stopped) ==
        "stop_token_ids[1] must be a token id between 0 and 511, got 512");
  auto none = ask("hello");
  none.prompts.clear();
  CHECK(message_of(encoder, none) == "prompt: at least one is needed");
}

TEST_CASE("Without a tokenizer only ids are served", "[actors]") {
  const TextEncoder encoder(nullptr, kLimits);
  CHECK(message_of(encoder, ask("hello")) ==
        "prompt: this model has no tokenizer; send the prompt as token ids");
  CHECK(message_of(encoder, with_ids({1})) == "accepted");
  GenerateRequest chat;
  chat.prompts = {runtime::ChatPrompt{}};
  chat.parse_chat = true;
  CHECK(message_of(encoder, chat) ==
        "messages: this model has no tokenizer; send token ids to /v1/completions");
}
