// The console without a server: what words mean, what answers say, and how they look.
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <numeric>

#include "memory/hybrid_cache.hpp"
#include "net/cache_json.hpp"
#include "net/console_answer.hpp"
#include "net/console_command.hpp"
#include "net/console_render.hpp"
#include "net/console_watch.hpp"
#include "tests/support/fake_service.hpp"

namespace json = boost::json;
using namespace memory;

namespace {

// Pages of 4, grid 8, an arena of 2560 bytes: ten states of 256 or forty pages of 64. Request 1
// left a checkpoint at 16, request 2 forked off at 8 and still runs.
CacheReport small_report() {
  HybridCache cache({4, 8, 0}, make_unified_pool({2560, 256, 64}),
                    make_eviction_policy("lru", {1.0, 0.0, 256, 64}));
  CacheReply reply;
  std::vector<KeyElement> key(20);
  std::iota(key.begin(), key.end(), 100);
  const SequenceId one{1u << 16}, two{2u << 16};
  cache.handle(Open{one, 1, {7, key}, 20, 1, 19}, reply);
  const SlotId saved = std::get<Opened>(reply.answers.back()).snapshots.at(0);
  cache.handle(Donate{one, 1, saved, 16, {}, false}, reply);
  cache.handle(Drop{one, 1, false}, reply);
  std::fill(key.begin() + 8, key.end(), 5);
  cache.handle(Open{two, 2, {7, key}, 20, 1, 19}, reply);
  return cache.report({ReportQuery::kAll});
}

struct Console {
  Console() : source(net::make_live_source(service)) {
    service.report = small_report();
    service.named = {{"chatcmpl-a", {1}}, {"chatcmpl-b", {2}}};
  }
  std::string text(const std::string& line) {
    const auto words = net::split_words(line);
    const auto command = net::parse_command(words);
    REQUIRE(command.has_value());
    const auto answer = net::console_answer(*command, *source);
    if (!answer) return answer.error().message;
    return net::render(words[0], *answer);
  }
  support::FakeService service;
  std::unique_ptr<net::ConsoleSource> source;
};

std::string complaint(const std::string& line) {
  const auto command = net::parse_command(net::split_words(line));
  REQUIRE_FALSE(command.has_value());
  return command.error().message;
}

}  // namespace

TEST_CASE("Words become a command, or a complaint that names the word", "[net][console]") {
  const auto command = net::parse_command(net::split_words("tree --prefix \"a b\" --depth 2"));
  REQUIRE(command.has_value());
  CHECK(json::serialize(*command) == R"({"cmd":"tree","prefix":"a b","depth":2})");
  CHECK(complaint("") == "a command is missing; \"help\" lists them");
  CHECK(complaint("jump") == "there is no command \"jump\"; \"help\" lists them");
  CHECK(complaint("node") == "node needs a node");
  CHECK(complaint("node x") == "node must be a number, got \"x\"");
  CHECK(complaint("slots 3") == "slots does not take \"3\"");
  CHECK(complaint("tree --width 3") == "tree has no option --width; try \"help tree\"");
  CHECK(complaint("tree --depth") == "--depth needs a value");
}

TEST_CASE("A report survives its JSON", "[net][console]") {
  const json::object once = net::to_json(small_report());
  const auto back = net::report_from_json(once);
  REQUIRE(back.has_value());
  CHECK(json::serialize(net::to_json(*back)) == json::serialize(once));
  json::object damaged = once;
  damaged["nodes"] = 3;
  CHECK(net::report_from_json(damaged).error().message == "\"nodes\" is no array");
  damaged.erase("tick");
  CHECK(net::report_from_json(damaged).error().message == "\"tick\" is missing or of another type");
  CHECK(net::parse_sequence("2.0") == SequenceId{2u << 16});
  CHECK(net::parse_sequence("131072") == SequenceId{2u << 16});
  for (const char* wrong : {"", "x", "2.", "2.x", "2.70000", "-1"})
    CHECK_FALSE(net::parse_sequence(wrong));
}

TEST_CASE("The tree of a small cache, to the character", "[net][console]") {
  Console console;
  CHECK(console.text("tree") == 
        "#0  root of namespace 0000000000000007\n"
        "  #2  [0, 8)  2 pages  tombstone  128 B  hits 1  kv locks 1\n"
        "      [100,101,102,103,104,105,106,107]\n"
        "    #1  [8, 16)  2 pages  checkpoint in slot 6  384 B  hits 0\n"
        "        [108,109,110,111,112,113,114,115]\n"
        "3 of 3 nodes shown; cached: 1 checkpoints, 4 pages of 4 tokens\n");
  CHECK(console.text("tree --depth 1").find("[8, 16)") == std::string::npos);
  CHECK(console.text("tree --sequence 2.0") == console.text("tree --depth 1 --sequence 2.0"));
  CHECK(console.text("tree --sequence 9.0").find("(no node)") == 0);
}

TEST_CASE("The slots, the arena and a reason, to the character", "[net][console]") {
  Console console;
  CHECK(console.text("slots") == 
        "place  slot.gen     role        owner\n"
        "    0  6.1          checkpoint  node #1 at position 16\n"
        "    1  7.1          working     sequence 2.0\n"
        "    2  8.1          snapshot    sequence 2.0\n"
        "3 in use, room for 5 more\n");
  CHECK(console.text("pool") == 
        "2.5 KiB, unified: states from the left, KV pages from the right\n"
        "|CCCCCCCCCCCCCCCCCCCCCCCCCCCCWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWSSSSSSSSSSSSSS|\n"
        "|SSSSSSSSSSSSSS..........................................................|\n"
        "|........................................................................|\n"
        "|.....................PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP|\n"
        "W working  S snapshot  C checkpoint  P pages  o hole  ! pinned  . free\n"
        "1 character = 9 B\n"
        "states        8 total        5 free        1 cached (1 evictable)       2 held  0 pending  of 256 B\n"
        "pages        28 total       21 free        4 cached (2 evictable)       3 held  0 pending  of 64 B\n");
  CHECK(console.text("why chatcmpl-a") == 
        "sequence 1.0: restored 0 of 20 tokens (cold)\n"
        "  KV of 0 tokens was cached; the deepest checkpoint on the way stands at 0\n"
        "  nothing of this prompt was cached in its namespace\n");
  CHECK(console.text("why 2.0") == 
        "sequence 2.0: restored 0 of 20 tokens (no-checkpoint)\n"
        "  KV of 8 tokens was cached; the deepest checkpoint on the way stands at 0\n"
        "  KV beyond 0 has no checkpoint at a multiple of 8\n"
        "  it plants a checkpoint at the branch, 8\n");
  CHECK(console.text("why chatcmpl-c") ==
        "there is no request \"chatcmpl-c\" among the latest; \"requests\" lists them");
}

TEST_CASE("A frame of the live view fits the terminal", "[net][console]") {
  Console console;
  net::WatchFrame frame;
  frame.stats = *net::console_answer({{"cmd", "stats"}}, *console.source);
  frame.pool = *net::console_answer({{"cmd", "pool"}}, *console.source);
  frame.moves = *net::console_answer({{"cmd", "moves"}}, *console.source);
  for (const size_t columns : {20u, 80u, 200u}) {
    for (const size_t rows : {5u, 24u, 60u}) {
      const auto lines = net::watch_lines("here", frame, rows, columns);
      CHECK(lines.size() <= rows);
      for (const std::string& line : lines) CHECK(line.size() <= columns);
    }
  }
}
