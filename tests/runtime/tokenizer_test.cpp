#include "runtime/tokenizer.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/support/tokenizer_directory.hpp"

using runtime::TokenId;
using runtime::Tokenizer;
using support::TokenizerDirectory;

namespace {

std::vector<TokenId> encode(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<TokenId> ids;
  tokenizer.encode_text(text, ids);
  return ids;
}

std::string decode(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string out;
  for (const TokenId id : ids) out += tokenizer.bytes(id);
  return out;
}

std::shared_ptr<const Tokenizer> random_tokenizer(std::mt19937& rng) {
  std::vector<std::string> tokens = support::single_bytes();
  std::set<std::string> known(tokens.begin(), tokens.end());
  for (int i = 0; i < 500; ++i) {
    const std::string token = tokens[rng() % tokens.size()] + tokens[rng() % tokens.size()];
    if (token.size() < 12 && known.insert(token).second) tokens.push_back(token);
  }
  TokenizerDirectory directory;
  directory.write_model(tokens);
  directory.write_special({{static_cast<int>(tokens.size()), "<|open|>"}});
  return Tokenizer::load(directory.path());
}

std::string load_error(const TokenizerDirectory& directory) {
  try {
    Tokenizer::load(directory.path());
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("text becomes ids whose bytes are the text, valid or not", "[runtime][property]") {
  const auto seed = GENERATE(range(0u, 20u));
  CAPTURE(seed);
  std::mt19937 rng(seed);
  const auto tokenizer = random_tokenizer(rng);
  const std::vector<std::string> alphabet{"word",     " ",        "\n",   "漢", "é", "\xff",
                                          "\xe6\xbc", "\xf0\x9f", "\x80", "😀",  "7"};
  for (int round = 0; round < 30; ++round) {
    std::string text;
    for (size_t k = rng() % 40; k > 0; --k) {
      text += rng() % 3 == 0 ? std::string(1, static_cast<char>(rng()))
                             : alphabet[rng() % alphabet.size()];
    }
    CHECK(decode(*tokenizer, encode(*tokenizer, text)) == text);
  }
}

TEST_CASE("invalid bytes are encoded one by one between ordinary words", "[runtime]") {
  std::vector<std::string> tokens = support::single_bytes();
  tokens.push_back("ab");
  tokens.push_back("\xff\xff");  // never joined: the bytes are no text
  TokenizerDirectory directory;
  directory.write_model(tokens);
  directory.write_special({{258, "<|open|>"}});
  const auto tokenizer = Tokenizer::load(directory.path());
  CHECK(encode(*tokenizer,
               "ab\xff\xff"
               "ab\xe6") == std::vector<TokenId>{256, 0xff, 0xff, 256, 0xe6});
}

TEST_CASE("text never yields a control id", "[runtime]") {
  const auto tokenizer = support::byte_tokenizer();
  const std::string text = "<|open|>message<|sep|>[EOS]<|end_of_msg|>";
  const auto ids = encode(*tokenizer, text);
  CHECK(ids.size() == text.size());
  for (const TokenId id : ids) CHECK_FALSE(tokenizer->is_special(id));
}

TEST_CASE("special tokens are known by name and id, unnamed ones are reserved", "[runtime]") {
  const auto tokenizer = support::byte_tokenizer();
  CHECK(tokenizer->size() == 512);
  CHECK(tokenizer->special("<|open|>") == 259);
  CHECK(tokenizer->special("[PAD]") == 511);
  CHECK(tokenizer->special("<|reserved_token_300|>") == 300);
  CHECK_FALSE(tokenizer->special("open").has_value());
  CHECK(tokenizer->bytes(258) == "<|end_of_msg|>");
  CHECK(tokenizer->bytes(65) == "A");
  CHECK(tokenizer->is_special(300));
  CHECK_FALSE(tokenizer->is_special(65));
  for (const TokenId unknown : {-1, 512, 1 << 30}) {
    CHECK(tokenizer->bytes(unknown).empty());
    CHECK_FALSE(tokenizer->is_special(unknown));
  }
}

TEST_CASE("many threads encode with one tokenizer", "[runtime]") {
  std::mt19937 rng(7);
  const auto tokenizer = random_tokenizer(rng);
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "Some words, 漢字 and\n" + std::to_string(rng());
  const auto expected = encode(*tokenizer, text);
  std::vector<std::vector<TokenId>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = encode(*tokenizer, text); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) CHECK(result == expected);
}

TEST_CASE("a directory without tiktoken.model has no tokenizer", "[runtime]") {
  const TokenizerDirectory directory;
  CHECK(Tokenizer::load(directory.path()) == nullptr);
}

TEST_CASE("a damaged tiktoken.model is refused with its line", "[runtime]") {
  struct Damage {
    std::string lines, complaint;
  };
  const auto damage = GENERATE(values<Damage>({
      {"QQ==\n", "tiktoken.model:1: expected a base64 token, one space and a rank"},
      {"QQ== 0\nQg= 1\n", "tiktoken.model:2: the token is not padded base64"},
      {"QQ== 0\n!!!! 1\n", "tiktoken.model:2: the token is not padded base64"},
      {" 0\n", "tiktoken.model:1: the token is not padded base64"},
      {"QQ== 0\n\nQg== -1\n", "tiktoken.model:3: the rank \"-1\" is not a whole number"},
      {"QQ== 0x\n", "tiktoken.model:1: the rank \"0x\""},
      {"QQ== 99999999999\n", "tiktoken.model:1: the rank \"99999999999\""},
      {"QQ== 0\nQQ== 1\n", "tiktoken.model:2: the token already stands in line 1"},
      {"QQ== 3\nQg== 3\n", "tiktoken.model:2: rank 3 already stands in line 1"},
      {"QQ== 0\n", "tiktoken.model: holds no token for the single byte 0"},
      {"", "tiktoken.model: holds no token for the single byte 0"},
  }));
  CAPTURE(damage.lines);
  const TokenizerDirectory directory;
  directory.write("tiktoken.model", damage.lines);
  directory.write_special({{256, "<|open|>"}});
  CHECK_THAT(load_error(directory),
             Catch::Contains(directory.path()) && Catch::Contains(damage.complaint));
}

TEST_CASE("a damaged tokenizer_config.json is refused with its line or key", "[runtime]") {
  struct Damage {
    std::string text, complaint;
  };
  const auto damage = GENERATE(values<Damage>({
      {"{\n\"a\": 1,\n}", "tokenizer_config.json:3: is not JSON"},
      {"{\n", "tokenizer_config.json:2: is not JSON"},
      {"{} x", "tokenizer_config.json:1: is not JSON"},
      {"[]", "tokenizer_config.json: is not a JSON object"},
      {"{}", "tokenizer_config.json: added_tokens_decoder is missing"},
      {R"({"added_tokens_decoder": []})", "added_tokens_decoder is missing"},
      {R"({"added_tokens_decoder": {"x": {"content": "a"}}})",
       "added_tokens_decoder.x: the id is not a whole number"},
      {R"({"added_tokens_decoder": {"12": {"content": "a"}}})",
       "added_tokens_decoder.12: the id belongs to tiktoken.model"},
      {R"({"added_tokens_decoder": {"256": {"name": "a"}}})",
       "added_tokens_decoder.256: has no \"content\""},
      {R"({"added_tokens_decoder": {"256": {"content": "a"}, "257": {"content": "a"}}})",
       "is given to two ids"},
  }));
  CAPTURE(damage.text);
  const TokenizerDirectory directory;
  directory.write_model(support::single_bytes());
  directory.write("tokenizer_config.json", damage.text);
  CHECK_THAT(load_error(directory),
             Catch::Contains(directory.path()) && Catch::Contains(damage.complaint));
}

TEST_CASE("a missing tokenizer_config.json is reported by name", "[runtime]") {
  const TokenizerDirectory directory;
  directory.write_model(support::single_bytes());
  CHECK_THAT(load_error(directory), Catch::Contains("tokenizer_config.json: cannot be read"));
}

TEST_CASE("Windows line ends and gaps between ranks are accepted", "[runtime]") {
  const TokenizerDirectory directory;
  std::string text;
  for (int byte = 0; byte < 256; ++byte) {
    text += support::base64(std::string(1, static_cast<char>(byte))) + " " +
            std::to_string(2 * byte) + "\r\n";
  }
  directory.write("tiktoken.model", text);
  directory.write_special({{511, "<|open|>"}});
  const auto tokenizer = Tokenizer::load(directory.path());
  CHECK(encode(*tokenizer, "A") == std::vector<TokenId>{130});
  CHECK(tokenizer->bytes(131).empty());
}
