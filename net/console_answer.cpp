#include "net/console_answer.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>

#include "memory/move_checker.hpp"
#include "net/cache_json.hpp"
#include "net/console_answers.hpp"
#include "net/json_fields.hpp"

namespace net {
namespace {

namespace json = boost::json;
using kernels::Result;
using Answer = Result<json::object>;

constexpr IntegerRange kCounts{0, 1'000'000};
constexpr IntegerRange kNumbers{0, std::numeric_limits<int64_t>::max()};
constexpr uint32_t kMovesAtOnce = 8192;
constexpr size_t kViolationsMax = 20;

Answer snapshot(Fields&, ConsoleSource& source) { return save_source(source); }

Answer stats(Fields&, ConsoleSource& source) {
  auto report = source.report({0});
  if (!report) return report.error();
  json::object all = to_json(*report);
  json::object answer{{"load", source.load()}};
  for (const char* name : {"page_tokens", "grid", "counters", "states", "pages"})
    answer[name] = all[name];
  answer["nodes"] = report->nodes.size();
  return answer;
}

Answer requests(Fields&, ConsoleSource& source) {
  json::array all;
  for (const actors::NamedRequest& request : source.requests())
    all.push_back(json::object{{"request", request.rid}, {"id", request.id.value}});
  return json::object{{"requests", std::move(all)}};
}

memory::MoveFilter filter_of(Fields& fields) {
  memory::MoveFilter filter;
  const std::vector<std::string_view> kinds(memory::kMoveNames.begin(), memory::kMoveNames.end());
  if (const auto kind = fields.word("kind", kinds)) {
    const auto at = std::find(kinds.begin(), kinds.end(), *kind) - kinds.begin();
    filter.move = static_cast<memory::MoveKind>(at);
  }
  if (const auto block = fields.word("block", {"state", "page"}))
    filter.block = *block == "state" ? memory::BlockKind::kState : memory::BlockKind::kPage;
  const auto sequence = sequence_of(fields, "sequence");
  if (sequence) {
    filter.owner_kind = memory::OwnerKind::kSequence;
    filter.owner = sequence->value;
  }
  if (const auto node = fields.integer("node", kNodes)) {
    if (sequence) fields.fail("node", "cannot be asked for beside a sequence: a move has one owner");
    filter.owner_kind = memory::OwnerKind::kNode;
    filter.owner = static_cast<uint64_t>(*node);
  }
  if (const auto index = fields.integer("index", kNodes))
    filter.index = static_cast<uint32_t>(*index);
  return filter;
}

Answer moves(Fields& fields, ConsoleSource& source) {
  memory::MoveQuery query;
  query.filter = filter_of(fields);
  query.max = static_cast<uint32_t>(fields.integer("last", {1, kMovesAtOnce}).value_or(20));
  query.from = static_cast<uint64_t>(fields.integer("from", kNumbers).value_or(0));
  if (!fields.ok()) return json::object();
  const auto page = source.moves(query);
  if (!page) return page.error();
  json::array records;
  for (const memory::MoveRecord& record : page->records) records.push_back(to_json(record));
  return json::object{
      {"first", page->first}, {"next", page->next}, {"moves", std::move(records)}};
}

// The ring may move on while it is read: then the check begins anew at what is left.
Answer verify(Fields&, ConsoleSource& source) {
  memory::MoveQuery query;
  query.max = 0;
  auto page = source.moves(query);
  if (!page) return page.error();
  const uint64_t end = page->next;
  uint64_t begin = query.from = page->first;
  query.max = kMovesAtOnce;
  std::optional<memory::MoveChecker> checker;
  json::array violations;
  uint64_t found = 0;
  while (query.from < end) {
    page = source.moves(query);
    if (!page) return page.error();
    if (page->records.empty()) break;
    if (!checker || page->records.front().number != query.from) {
      begin = page->records.front().number;
      checker.emplace(page->geometry, begin == 1);
    }
    for (const memory::MoveRecord& record : page->records) {
      if (record.number >= end) break;
      const auto violation = checker->take(record);
      if (!violation || ++found > kViolationsMax) continue;
      violations.push_back(json::object{{"record", to_json(record)},
                                        {"rule", std::string(violation->rule)},
                                        {"text", violation->text}});
    }
    query.from = page->records.back().number + 1;
  }
  json::array left_over;
  if (checker && begin == 1) {
    for (const memory::MoveViolation& left : checker->finish()) {
      if (left_over.size() < kViolationsMax) left_over.emplace_back(left.text);
    }
  }
  const auto totals = checker ? checker->totals() : memory::MoveChecker::Totals();
  return json::object{{"records", totals.records},
                      {"first", begin},
                      {"whole", begin == 1},
                      {"violations", found},
                      {"shown", std::move(violations)},
                      {"left_over", std::move(left_over)},
                      {"sequences", totals.sequences},
                      {"slots_cached", totals.slots_cached},
                      {"slots_held", totals.slots_held},
                      {"pages_cached", totals.pages_cached},
                      {"pages_held", totals.pages_held}};
}

template <memory::NodeAction kAction>
Answer change(Fields& fields, ConsoleSource& source) {
  const auto node = fields.integer("node", kNodes);
  if (!node) fields.fail("node", "must name a node");
  if (!fields.ok()) return json::object();
  const auto outcome = source.change({kAction, {static_cast<uint32_t>(*node)}});
  if (!outcome) return outcome.error();
  return json::object{{"node", outcome->node.index},
                      {"slots", outcome->slots},
                      {"pages", outcome->pages},
                      {"pins", outcome->pins}};
}

using Handler = Answer (*)(Fields& fields, ConsoleSource& source);
const std::map<std::string_view, Handler> kHandlers = {
    {"tree", answer_tree},
    {"node", answer_node},
    {"slots", answer_slots},
    {"pool", answer_pool},
    {"why", answer_why},
    {"requests", requests},
    {"moves", moves},
    {"verify", verify},
    {"stats", stats},
    {"snapshot", snapshot},
    {"evict", change<memory::NodeAction::kEvict>},
    {"pin", change<memory::NodeAction::kPin>},
    {"unpin", change<memory::NodeAction::kUnpin>},
};

}  // namespace

Answer console_answer(const json::object& command, ConsoleSource& source) {
  std::optional<kernels::Error> error;
  Fields fields(command, "", error);
  const auto name = fields.string("cmd");
  if (!name) fields.fail("cmd", "must name a command");
  if (error) return *error;
  const auto handler = kHandlers.find(*name);
  if (handler == kHandlers.end())
    return kernels::invalid("cmd: there is no command \"" + *name + "\"", "cmd");
  auto answer = handler->second(fields, source);
  if (error) return *error;
  return answer;
}

}  // namespace net
