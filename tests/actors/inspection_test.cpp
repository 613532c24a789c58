// A console's questions to the running actors: answered in mailbox order, and what they change
// comes back to the scheduler like everything else.
#include <catch2/catch.hpp>

#include "tests/support/actor_lab.hpp"

using namespace actors;

namespace {

void finish(SystemLab& lab, const std::string& prompt, uint32_t max_tokens = 3) {
  const Recorder recorder;
  REQUIRE(lab->submit(ask(prompt, max_tokens), recorder.sink()).has_value());
  lab.settle();
  REQUIRE(recorder.ended());
}

memory::NodeReport cached_leaf(SystemLab& lab) {
  const auto report = lab->cache_report({memory::ReportQuery::kAll});
  REQUIRE(report.has_value());
  for (const memory::NodeReport& node : report->nodes) {
    if (node.checkpoint && node.end == 128) return node;
  }
  FAIL("no checkpoint at 128");
  return {};
}

}  // namespace

TEST_CASE("A console sees what a request left in the cache", "[actors][console]") {
  SystemLab lab(lab_config(), alphabet_factory());
  lab.settle();
  finish(lab, std::string(150, 'r'));
  const memory::NodeReport leaf = cached_leaf(lab);
  CHECK(leaf.begin == 64);  // the chunk before planted one too
  CHECK(leaf.pages == 8);
  CHECK(leaf.span == std::vector<memory::KeyElement>(64, 'r'));
  CHECK(lab->cache_report({3})->nodes.back().span.size() <= 3);
  CHECK(lab->cache_report({})->recent.back().reason == memory::MissReason::kCold);
  CHECK(lab->named_requests().back().rid == std::string(150, 'r'));

  const auto moves = lab->moves({});
  REQUIRE(moves.has_value());
  CHECK(moves->first == 1);
  CHECK(moves->records.size() == moves->next - 1);
  memory::MoveQuery donated;
  donated.filter.move = memory::MoveKind::kDonate;
  donated.filter.block = memory::BlockKind::kState;
  donated.max = 1;
  const auto last = lab->moves(donated);
  REQUIRE(last->records.size() == 1);
  CHECK(last->records[0].position == 128);
}

TEST_CASE("A pinned node outlives a flush, an unpinned one does not", "[actors][console]") {
  SystemLab lab(lab_config(), alphabet_factory());
  lab.settle();
  finish(lab, std::string(150, 'r'));
  const memory::NodeId node = cached_leaf(lab).node;
  REQUIRE(lab->change_node({memory::NodeAction::kPin, node})->pins == 1);
  REQUIRE(lab->flush_cache());
  lab.settle();
  CHECK(cached_leaf(lab).pins == 1);
  const auto evict = lab->change_node({memory::NodeAction::kEvict, node});
  CHECK(evict.error().message ==
        "node " + std::to_string(node.index) + " is pinned: unpin it first");
  REQUIRE(lab->change_node({memory::NodeAction::kUnpin, node})->pins == 0);
  CHECK(lab->change_node({memory::NodeAction::kUnpin, node}).error().message ==
        "node " + std::to_string(node.index) + " is not pinned");
  const auto evicted = lab->change_node({memory::NodeAction::kEvict, node});
  REQUIRE(evicted.has_value());
  CHECK(evicted->slots == 1);
  CHECK(evicted->pages == 16);
  lab.settle();
  finish(lab, std::string(150, 'r'));  // what was freed is used again; every move is checked
  CHECK(lab->change_node({memory::NodeAction::kPin, {999}}).error().message ==
        "there is no node 999");
}

TEST_CASE("A question to an engine that failed is answered", "[actors][console]") {
  SystemLab lab(lab_config(), [](kernels::Ops&, const runtime::ModelOptions&) -> LoadedModel {
    throw std::runtime_error("no weights");
  });
  lab.settle();
  CHECK(lab->cache_report({}).error().message == "the engine is not running");
}
