#include "net/console_render.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <map>

#include "memory/move_record.hpp"
#include "net/cache_json.hpp"
#include "net/openai_writer.hpp"
#include "net/text_format.hpp"
#include "runtime/utf8.hpp"

namespace net {
namespace {

namespace json = boost::json;

unsigned long long num(const json::object& object, const char* name) {
  const json::value* found = object.if_contains(name);
  json::error_code ignored;
  return found != nullptr && found->is_number() ? found->to_number<uint64_t>(ignored) : 0;
}
std::string str(const json::object& object, const char* name) {
  const json::value* found = object.if_contains(name);
  if (found == nullptr) return "-";
  return found->is_string() ? std::string(found->get_string().c_str()) : json::serialize(*found);
}
bool yes(const json::object& object, const char* name) {
  const json::value* found = object.if_contains(name);
  return found != nullptr && found->is_bool() && found->get_bool();
}
const json::array& list(const json::object& object, const char* name) {
  static const json::array kEmpty;
  const json::value* found = object.if_contains(name);
  return found != nullptr && found->is_array() ? found->get_array() : kEmpty;
}
const json::object& part(const json::object& object, const char* name) {
  static const json::object kEmpty;
  const json::value* found = object.if_contains(name);
  return found != nullptr && found->is_object() ? found->get_object() : kEmpty;
}

// What a span holds: its text where there is one, else its first token ids.
std::string span_text(const json::object& node, size_t most) {
  std::string shown;
  if (const std::string text = str(node, "text"); !text.empty() && text != "-") {
    append_quoted(shown, text);
  } else {
    shown = json::serialize(list(node, "tokens"));
  }
  if (runtime::code_point_prefix(shown, most).size() == shown.size()) return shown;
  return std::string(runtime::code_point_prefix(shown, most - 3)) + "...";
}

std::string node_line(const json::object& node) {
  const size_t depth = num(node, "depth");
  if (node.at("parent").is_null())
    return format("#%llu  root of namespace %016llx\n", num(node, "node"), num(node, "namespace"));
  std::string line(2 * std::min<size_t>(depth, 16), ' ');
  line += format("#%llu  [%llu, %llu)  %llu pages  ", num(node, "node"), num(node, "begin"),
                 num(node, "end"), num(node, "pages"));
  line += yes(node, "tombstone") ? "tombstone" : "checkpoint in slot " + str(node, "checkpoint");
  line += "  " + bytes_text(static_cast<double>(num(node, "bytes")));
  line += format("  hits %llu", num(node, "hits"));
  if (num(node, "restores") > 0) line += format("  restored %llu", num(node, "restores"));
  if (num(node, "kv_locks") > 0) line += format("  kv locks %llu", num(node, "kv_locks"));
  if (num(node, "state_locks") > 0) line += format("  state locks %llu", num(node, "state_locks"));
  if (num(node, "pins") > 0) line += format("  pinned %llu", num(node, "pins"));
  if (yes(node, "superseded")) line += "  superseded";
  return line + "\n" + std::string(2 * std::min<size_t>(depth, 16) + 4, ' ') +
         span_text(node, 64) + "\n";
}

std::string tree(const json::object& result) {
  std::string text;
  for (const json::value& node : list(result, "nodes")) text += node_line(node.get_object());
  if (text.empty()) text = "(no node)\n";
  return text + format("%zu of %llu nodes shown; cached: %llu checkpoints, %llu pages of %llu "
                       "tokens\n",
                       list(result, "nodes").size(), num(result, "total"), num(result, "states"),
                       num(result, "pages"), num(result, "page_tokens"));
}

std::string node(const json::object& result) {
  std::string text = node_line(result);
  text += "path " + str(result, "path") + "  children " + str(result, "child_nodes") +
          "  used by " + str(result, "used_by") + "\n";
  text += "planted by " + str(result, "planted_by") +
          format("  last used %llu matches ago\n", num(result, "age"));
  return text + "tokens " + str(result, "tokens") + "\n";
}

std::string slots(const json::object& result) {
  std::string text = "place  slot.gen     role        owner\n";
  for (const json::value& value : list(result, "slots")) {
    const json::object& slot = value.get_object();
    const std::string id = str(slot, "slot") + "." + str(slot, "generation");
    const std::string owner = slot.contains("sequence")
                                  ? "sequence " + str(slot, "sequence")
                                  : "node #" + str(slot, "node") + " at position " +
                                        str(slot, "position") +
                                        (num(slot, "locks") > 0 ? ", locked" : "");
    text += format("%5llu  %-11s  %-10s  %s\n", num(slot, "place"), id.c_str(),
                   str(slot, "role").c_str(), owner.c_str());
  }
  return text + format("%zu in use, room for %llu more\n", list(result, "slots").size(),
                       num(result, "free"));
}

std::string owners_line(const char* name, const json::object& owners, double block_bytes) {
  return format("%-7s %7llu total  %7llu free  %7llu cached (%llu evictable)  %6llu held  "
                "%llu pending",
                name, num(owners, "total"), num(owners, "free"), num(owners, "cached"),
                num(owners, "evictable"), num(owners, "held"), num(owners, "pending")) +
         (block_bytes > 0 ? "  of " + bytes_text(block_bytes) : "") + "\n";
}

std::string pool(const json::object& result) {
  const json::object& layout = part(result, "layout");
  const double arena = static_cast<double>(num(layout, "arena_bytes"));
  std::string text = bytes_text(arena) + (yes(layout, "unified") ? ", unified" : ", split") +
                     ": states from the left, KV pages from the right\n";
  constexpr size_t kWidth = 72;
  const std::string bar = pool_bar(result, 4 * kWidth);
  for (size_t row = 0; row < 4; ++row)
    text.append(1, '|').append(bar, row * kWidth, kWidth).append("|\n");
  text += std::string(kPoolLegend) + "\n1 character = " +
          bytes_text(arena / static_cast<double>(4 * kWidth)) + "\n";
  const auto block_bytes = [&](const char* kind) {
    return static_cast<double>(num(part(part(layout, kind), "region"), "block_bytes"));
  };
  return text + owners_line("states", part(result, "states"), block_bytes("states")) +
         owners_line("pages", part(result, "pages"), block_bytes("pages"));
}

std::string why_one(const json::object& open, unsigned long long grid) {
  const auto key = num(open, "key_positions"), kv = num(open, "kv_matched"),
             at = num(open, "restored"), branch = num(open, "branch_target");
  std::string text = "sequence " + str(open, "sequence") + ": " +
                     (yes(open, "refused") ? "refused, no room for it yet\n" : "");
  const std::string reason = str(open, "reason");
  if (!yes(open, "refused")) {
    text += format("restored %llu of %llu tokens (", at, key) + reason + ")\n";
  }
  text += format("  KV of %llu tokens was cached; the deepest checkpoint on the way stands at "
                 "%llu\n",
                 kv, num(open, "deepest_checkpoint"));
  if (reason == "cold") text += "  nothing of this prompt was cached in its namespace\n";
  if (reason == "no-checkpoint")
    text += format("  KV beyond %llu has no checkpoint at a multiple of %llu\n", at, grid);
  if (reason == "restore-limit")
    text += "  a deeper checkpoint lies beyond what it may restore: at least one token (or the "
            "prompt's log-probabilities) must be computed\n";
  if (reason == "no-room") text += "  the checkpoint was given up to make room for it\n";
  if (branch > 0) text += format("  it plants a checkpoint at the branch, %llu\n", branch);
  if (num(open, "evicted_slots") + num(open, "evicted_pages") > 0) {
    text += format("  evicted for it: %llu checkpoints, %llu pages\n", num(open, "evicted_slots"),
                   num(open, "evicted_pages"));
  }
  return text;
}

std::string why(const json::object& result) {
  std::string text;
  for (const json::value& open : list(result, "admissions"))
    text += why_one(open.get_object(), num(result, "grid"));
  if (!text.empty()) return text;
  return "request " + str(result, "request") +
         " was not admitted yet, or too long ago (the last 256 admissions are kept)\n";
}

std::string place_text(const memory::MoveRecord& record, const memory::BlockPlace& place) {
  if (place.generation == 0 && place.physical == memory::kNowhere) return "";
  return format("%s %u.%u@%u", std::string(name_of(record.block)).c_str(), place.index,
                place.generation, place.physical);
}

std::string move_line(const json::value& value) {
  const auto read = move_from_json(value.get_object());
  if (!read) return "(unreadable: " + read.error().message + ")\n";
  const memory::MoveRecord& move = *read;
  std::string text = format("%9llu  step %-6llu %-14s ", static_cast<unsigned long long>(move.number),
                            static_cast<unsigned long long>(move.step),
                            std::string(name_of(move.move)).c_str());
  const std::string from = place_text(move, move.source), to = place_text(move, move.target);
  text += from + (!from.empty() && !to.empty() ? " -> " : "") + to;
  using memory::MoveKind;
  const bool positioned = move.move == MoveKind::kRestore || move.move == MoveKind::kAppend ||
                          move.move == MoveKind::kWrite || move.move == MoveKind::kSnapshot ||
                          move.move == MoveKind::kDonate || move.move == MoveKind::kEnd;
  if (positioned) text += format("  at %u", move.position);
  if (move.move == MoveKind::kWrite) text += format("+%u", move.count);
  if (move.owner_kind == memory::OwnerKind::kSequence)
    text += "  seq " + sequence_name({move.owner});
  if (move.owner_kind == memory::OwnerKind::kNode)
    text += format("  node #%llu", static_cast<unsigned long long>(move.owner));
  if (move.move == MoveKind::kFree)
    text += "  (" + std::string(name_of(static_cast<memory::FreeReason>(move.reason))) + ")";
  return text + "\n";
}

std::string moves(const json::object& result) {
  std::string text;
  for (const json::value& move : list(result, "moves")) text += move_line(move);
  return text + format("%zu shown; the log holds records %llu to %llu\n",
                       list(result, "moves").size(), num(result, "first"),
                       num(result, "next") - 1);
}

std::string verify(const json::object& result) {
  std::string text = format("%llu records checked from record %llu on", num(result, "records"),
                            num(result, "first"));
  text += yes(result, "whole") ? ", the whole run\n" : ": what came before is taken as found\n";
  for (const json::value& value : list(result, "shown")) {
    const json::object& violation = value.get_object();
    text += "rule \"" + str(violation, "rule") + "\" broken: " + str(violation, "text") + "\n  " +
            move_line(part(violation, "record"));
  }
  const json::array& left = list(result, "left_over");
  if (num(result, "sequences") == 0) {  // what still runs holds what it holds
    for (const json::value& value : left)
      text += "left over: " + std::string(value.as_string()) + "\n";
  }
  text += num(result, "violations") == 0
              ? "no violation\n"
              : format("%llu violations\n", num(result, "violations"));
  return text + format("%llu sequences run; states: %llu cached, %llu held; pages: %llu cached, "
                       "%llu held\n",
                       num(result, "sequences"), num(result, "slots_cached"),
                       num(result, "slots_held"), num(result, "pages_cached"),
                       num(result, "pages_held"));
}

std::string stats(const json::object& result) {
  const json::object& load = part(result, "load");
  const json::object& counters = part(result, "counters");
  const json::value* const speed = load.if_contains("tokens_per_second");
  std::string text = format("%llu running  %llu queued  %.1f tokens/s  %llu steps\n",
                            num(load, "running"), num(load, "queued"),
                            speed != nullptr && speed->is_number() ? speed->to_number<double>() : 0,
                            num(load, "steps"));
  text += owners_line("states", part(result, "states"), 0);
  text += owners_line("pages", part(result, "pages"), 0);
  const auto key = num(counters, "key_positions");
  const auto share = [&](const char* name) {
    return key == 0 ? 0.0 : 100.0 * static_cast<double>(num(counters, name)) /
                                static_cast<double>(key);
  };
  text += format("%llu admissions, %llu restored a state; of %llu tokens looked up %.1f %% had "
                 "their KV, %.1f %% their state\n",
                 num(counters, "opened"), num(counters, "restored"), key, share("kv_positions"),
                 share("state_positions"));
  text += format("misses: %llu cold, %llu without a checkpoint, %llu beyond the limit, %llu for "
                 "want of room\n",
                 num(counters, "misses_1"), num(counters, "misses_2"), num(counters, "misses_3"),
                 num(counters, "misses_4"));
  text += format("donated %llu  evicted %llu states, %llu pages  moved %llu states, %llu pages\n",
                 num(counters, "donated"), num(counters, "evicted_slots_0"),
                 num(counters, "evicted_pages_0"), num(counters, "state_moves"),
                 num(counters, "page_moves"));
  return text;
}

std::string requests(const json::object& result) {
  std::string text;
  const json::array& all = list(result, "requests");
  for (size_t i = all.size() > 20 ? all.size() - 20 : 0; i < all.size(); ++i) {
    const json::object& one = all[i].get_object();
    text += format("%6llu.*  ", num(one, "id")) + str(one, "request") + "\n";
  }
  return text + format("%zu requests are remembered\n", all.size());
}

std::string evicted(const json::object& result) {
  return format("node #%llu: %llu states and %llu pages are free now\n", num(result, "node"),
                num(result, "slots"), num(result, "pages"));
}
std::string pinned(const json::object& result) {
  return format("node #%llu is pinned %llu times\n", num(result, "node"), num(result, "pins"));
}

using Renderer = std::string (*)(const json::object&);
const std::map<std::string_view, Renderer> kRenderers = {
    {"tree", tree},     {"node", node},   {"slots", slots},   {"pool", pool},
    {"why", why},       {"moves", moves}, {"verify", verify}, {"stats", stats},
    {"evict", evicted}, {"pin", pinned},  {"unpin", pinned},  {"requests", requests}};

}  // namespace

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit) bytes /= 1024;
  return format(unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

// A character shows the most telling of what its bytes hold.
std::string pool_bar(const json::object& result, size_t width) {
  const json::object& layout = part(result, "layout");
  const double arena = std::max(1.0, static_cast<double>(num(layout, "arena_bytes")));
  std::string bar(width, '.');
  const auto draw = [&](const char* kind, uint64_t first, uint64_t end, char mark) {
    const json::object& region = part(part(layout, kind), "region");
    const auto block = static_cast<double>(num(region, "block_bytes"));
    const auto offset = static_cast<double>(num(region, "offset"));
    const auto at = [&](uint64_t place) {
      return (offset + static_cast<double>(place) * block) / arena * static_cast<double>(width);
    };
    const auto from = static_cast<size_t>(at(first));
    const auto to = std::max(from + 1, static_cast<size_t>(at(end) + 0.5));
    for (size_t i = from; i < std::min(to, width); ++i) bar[i] = mark;
  };
  const json::object& pages = part(layout, "pages");
  const uint64_t blocks = num(part(pages, "region"), "blocks"), extent = num(pages, "extent");
  if (extent > 0) draw("pages", blocks - extent, blocks, 'P');
  for (const auto& [name, mark] : {std::pair{"checkpoints", 'C'}, std::pair{"snapshots", 'S'},
                                   std::pair{"working", 'W'}}) {
    for (const json::value& place : list(result, name))
      draw("states", place.to_number<uint64_t>(), place.to_number<uint64_t>() + 1, mark);
  }
  for (const auto& [name, mark] : {std::pair{"holes", 'o'}, std::pair{"pinned", '!'}}) {
    for (const json::value& place : list(part(layout, "states"), name))
      draw("states", place.to_number<uint64_t>(), place.to_number<uint64_t>() + 1, mark);
    for (const json::value& place : list(pages, name)) {
      const uint64_t physical = blocks - 1 - place.to_number<uint64_t>();
      draw("pages", physical, physical + 1, mark);
    }
  }
  return bar;
}

std::string render(std::string_view command, const json::object& result) {
  const auto found = kRenderers.find(command);
  if (found == kRenderers.end()) return json::serialize(result) + "\n";
  return found->second(result);
}

}  // namespace net
