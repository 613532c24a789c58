#include "net/console_answers.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <map>
#include <set>

#include "actors/sequence_ids.hpp"
#include "net/cache_json.hpp"
#include "runtime/utf8.hpp"

namespace net {
namespace {

namespace json = boost::json;
using memory::CacheReport;
using memory::NodeReport;
using Answer = kernels::Result<json::object>;

constexpr uint32_t kTokensShown = 24;  // of a span, in a list

// The report's nodes as the tree that they are.
class TreeView {
 public:
  explicit TreeView(const CacheReport& report) : report_(report) {
    for (const NodeReport& node : report.nodes) {
      nodes_[node.node.index] = &node;
      if (node.root)
        roots_.push_back(&node);
      else
        children_[node.parent.index].push_back(&node);
    }
    for (const memory::OpenRecord& open : report.recent) sequences_[open.ticket] = open.sequence;
    for (const memory::AdmissionReport& one : report.admissions)
      sequences_[one.ticket] = one.sequence;
  }

  const NodeReport* find(uint32_t index) const {
    const auto found = nodes_.find(index);
    return found == nodes_.end() ? nullptr : found->second;
  }
  const std::vector<const NodeReport*>& roots() const { return roots_; }
  const std::vector<const NodeReport*>& children(const NodeReport& node) const {
    static const std::vector<const NodeReport*> kNone;
    const auto found = children_.find(node.node.index);
    return found == children_.end() ? kNone : found->second;
  }
  std::vector<const NodeReport*> path(uint32_t index) const {  // from below the root
    std::vector<const NodeReport*> up;
    for (const NodeReport* node = find(index); node && !node->root; node = find(node->parent.index))
      up.push_back(node);
    std::reverse(up.begin(), up.end());
    return up;
  }
  std::string path_text(const NodeReport& node) const {
    std::string text;
    for (const NodeReport* each : path(node.node.index)) text += each->text;
    return text;
  }
  std::optional<memory::SequenceId> planter(uint64_t ticket) const {
    const auto found = sequences_.find(ticket);
    return found == sequences_.end() ? std::nullopt : std::optional(found->second);
  }

  json::object describe(const NodeReport& node, uint32_t depth) const {
    const memory::BlockPool::Layout& layout = report_.layout;
    json::object out{{"node", node.node.index},
                     {"depth", depth},
                     {"namespace", node.name_space},
                     {"begin", node.begin},
                     {"end", node.end},
                     {"pages", node.pages},
                     {"bytes", node.pages * layout.pages.region.block_bytes +
                                   (node.checkpoint ? layout.states.region.block_bytes : 0)},
                     {"checkpoint", nullptr},
                     {"tombstone", !node.root && !node.checkpoint},
                     {"kv_locks", node.kv_locks},
                     {"state_locks", node.state_locks},
                     {"pins", node.pins},
                     {"hits", node.hits},
                     {"restores", node.restores},
                     {"superseded", node.superseded},
                     {"children", children(node).size()},
                     {"age", report_.tick - std::max(node.kv_used, node.state_used)}};
    out["parent"] = node.root ? json::value(nullptr) : json::value(node.parent.index);
    if (node.checkpoint) out["checkpoint"] = node.checkpoint->index;
    if (const auto sequence = planter(node.kv_planter))
      out["planted_by"] = sequence_name(*sequence);
    const auto shown = std::min<size_t>(node.span.size(), kTokensShown);
    out["tokens"] = json::array(node.span.begin(), node.span.begin() + static_cast<long>(shown));
    out["text"] = node.text;
    return out;
  }

 private:
  const CacheReport& report_;
  std::map<uint32_t, const NodeReport*> nodes_;
  std::map<uint32_t, std::vector<const NodeReport*>> children_;
  std::vector<const NodeReport*> roots_;
  std::map<uint64_t, memory::SequenceId> sequences_;  // by ticket
};

// Which nodes a tree command shows, and the inner ones that lead to them.
struct TreeFilter {
  uint32_t depth = UINT32_MAX;
  std::optional<std::string> prefix, contains;
  std::optional<memory::SequenceId> sequence;

  bool needs_text() const { return prefix || contains; }
  bool any() const { return needs_text() || sequence; }
  std::set<uint32_t> matching(const CacheReport& report, const TreeView& tree) const {
    std::set<uint32_t> shown;
    std::set<uint32_t> held;
    for (const memory::AdmissionReport& one : report.admissions) {
      if (sequence && one.sequence == *sequence) {
        for (const NodeReport* node : tree.path(one.node.index)) held.insert(node->node.index);
      }
    }
    for (const NodeReport& node : report.nodes) {
      if (node.root) continue;
      if (contains && node.text.find(*contains) == std::string::npos) continue;
      if (prefix && tree.path_text(node).rfind(*prefix, 0) != 0) continue;
      if (sequence && !held.contains(node.node.index) &&
          tree.planter(node.kv_planter) != sequence &&
          tree.planter(node.checkpoint_planter) != sequence)
        continue;
      for (const NodeReport* each : tree.path(node.node.index)) shown.insert(each->node.index);
    }
    return shown;
  }
};

void add_below(const TreeView& tree, const NodeReport& node, uint32_t depth,
               const TreeFilter& filter, const std::set<uint32_t>& shown, json::array& out) {
  if (depth > filter.depth) return;
  if (!node.root && filter.any() && !shown.contains(node.node.index)) return;
  out.push_back(tree.describe(node, depth));
  for (const NodeReport* child : tree.children(node))
    add_below(tree, *child, depth + 1, filter, shown, out);
}

// Of a text, in characters. One has at most four bytes, and a token at least one: the text of
// so many tokens begins like that of the whole span.
constexpr size_t kTextShown = 60;
constexpr uint32_t kTextTokens = 4 * (kTextShown + 1);

}  // namespace

std::optional<memory::SequenceId> sequence_of(Fields& fields, std::string_view name) {
  const auto word = fields.string(name);
  if (!word) return std::nullopt;
  const auto sequence = parse_sequence(*word);
  if (!sequence)
    fields.fail(name, "must be REQUEST.CHOICE or a number, got \"" + *word + "\"");
  return sequence;
}

Answer answer_tree(Fields& fields, ConsoleSource& source) {
  TreeFilter filter;
  if (const auto depth = fields.integer("depth", {0, 1'000'000}))
    filter.depth = static_cast<uint32_t>(*depth);
  filter.prefix = fields.string("prefix");
  filter.contains = fields.string("contains");
  filter.sequence = sequence_of(fields, "sequence");
  if (!fields.ok()) return json::object();
  auto report = source.report({filter.needs_text() ? memory::ReportQuery::kAll : kTextTokens});
  if (!report) return report.error();
  const TreeView tree(*report);
  const std::set<uint32_t> shown = filter.matching(*report, tree);
  for (NodeReport& node : report->nodes)
    node.text = std::string(runtime::code_point_prefix(node.text, kTextShown));
  json::array nodes;
  for (const NodeReport* root : tree.roots()) {
    const size_t before = nodes.size();
    add_below(tree, *root, 0, filter, shown, nodes);
    if (filter.any() && nodes.size() == before + 1) nodes.pop_back();  // nothing below matched
  }
  return json::object{{"nodes", std::move(nodes)},
                      {"total", report->nodes.size()},
                      {"page_tokens", report->page_tokens},
                      {"states", report->owners.states.cached},
                      {"pages", report->owners.pages.cached}};
}

Answer answer_node(Fields& fields, ConsoleSource& source) {
  const auto id = fields.integer("node", kNodes);
  if (!id) fields.fail("node", "must name a node");
  if (!fields.ok()) return json::object();
  const auto report = source.report({memory::ReportQuery::kAll});
  if (!report) return report.error();
  const TreeView tree(*report);
  const NodeReport* const node = tree.find(static_cast<uint32_t>(*id));
  if (node == nullptr) {
    return kernels::Error{kernels::ErrorCode::kNotFound,
                          "there is no node " + std::to_string(*id), "node"};
  }
  const auto path = tree.path(node->node.index);
  json::object out = tree.describe(*node, static_cast<uint32_t>(path.size()));
  out["tokens"] = json::array(node->span.begin(), node->span.end());
  json::array above, below, users;
  for (const NodeReport* each : path) above.push_back(each->node.index);
  for (const NodeReport* child : tree.children(*node)) below.push_back(child->node.index);
  for (const memory::AdmissionReport& one : report->admissions) {
    const auto used = tree.path(one.node.index);
    if (std::find(used.begin(), used.end(), node) != used.end())
      users.emplace_back(sequence_name(one.sequence));
  }
  out["path"] = std::move(above);
  out["child_nodes"] = std::move(below);
  out["used_by"] = std::move(users);
  return out;
}

Answer answer_slots(Fields&, ConsoleSource& source) {
  const auto report = source.report({0});
  if (!report) return report.error();
  static constexpr const char* kRoles[] = {"working", "snapshot", "checkpoint"};
  const TreeView tree(*report);
  json::array slots;
  for (const memory::SlotReport& slot : report->slots) {
    json::object one{{"place", slot.physical},
                     {"slot", slot.slot.index},
                     {"generation", slot.slot.generation},
                     {"role", kRoles[std::min<size_t>(static_cast<size_t>(slot.role), 2)]}};
    if (slot.role != memory::SlotRole::kCheckpoint) {
      one["sequence"] = sequence_name(slot.sequence);
    } else {
      one["node"] = slot.node.index;
      const NodeReport* const node = tree.find(slot.node.index);
      if (node) one["position"] = node->end;
      if (node) one["locks"] = node->state_locks;
    }
    slots.push_back(std::move(one));
  }
  return json::object{{"slots", std::move(slots)},
                      {"free", report->owners.states.free},
                      {"total", report->owners.states.total}};
}

Answer answer_pool(Fields&, ConsoleSource& source) {
  const auto report = source.report({0});
  if (!report) return report.error();
  json::object all = to_json(*report);
  json::array working, snapshots, checkpoints;
  for (const memory::SlotReport& slot : report->slots) {
    (slot.role == memory::SlotRole::kWorking    ? working
     : slot.role == memory::SlotRole::kSnapshot ? snapshots
                                                : checkpoints)
        .push_back(slot.physical);
  }
  return json::object{{"layout", all["layout"]},
                      {"states", all["states"]},
                      {"pages", all["pages"]},
                      {"working", std::move(working)},
                      {"snapshots", std::move(snapshots)},
                      {"checkpoints", std::move(checkpoints)}};
}

Answer answer_why(Fields& fields, ConsoleSource& source) {
  const auto name = fields.string("request");
  if (!name) fields.fail("request", "must name a request or a sequence");
  if (!fields.ok()) return json::object();
  const auto report = source.report({0});
  if (!report) return report.error();
  std::set<uint64_t> ids;
  for (const actors::NamedRequest& request : source.requests()) {
    if (request.rid == *name) ids.insert(request.id.value);
  }
  const auto sequence = parse_sequence(*name);
  static constexpr const char* kReasons[] = {"hit", "cold", "no-checkpoint", "restore-limit",
                                             "no-room"};
  json::array admissions;
  for (const memory::OpenRecord& open : report->recent) {
    if (!ids.contains(actors::request_of(open.sequence).value) && open.sequence != sequence)
      continue;
    admissions.push_back(json::object{
        {"sequence", sequence_name(open.sequence)},
        {"key_positions", open.key_positions},
        {"kv_matched", open.kv},
        {"restored", open.position},
        {"deepest_checkpoint", open.deepest},
        {"branch_target", open.branch},
        {"reason", kReasons[std::min<size_t>(static_cast<size_t>(open.reason), 4)]},
        {"refused", open.refused},
        {"evicted_slots", open.evicted_slots},
        {"evicted_pages", open.evicted_pages}});
  }
  if (ids.empty() && admissions.empty()) {
    return kernels::Error{kernels::ErrorCode::kNotFound,
                          "there is no request \"" + *name +
                              "\" among the latest; \"requests\" lists them",
                          "request"};
  }
  return json::object{{"request", *name},
                      {"grid", report->grid},
                      {"prefix_hits", report->counters.restored},
                      {"admissions", std::move(admissions)}};
}

}  // namespace net
