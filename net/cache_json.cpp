#include "net/cache_json.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>
#include <charconv>
#include <stdexcept>

#include "actors/sequence_ids.hpp"

namespace net {
namespace {

namespace json = boost::json;
using memory::BlockKind;
using memory::OwnerKind;

// One walk over a value's fields writes it or reads it: what is written is what is read.
class Writer {
 public:
  json::object out;
  template <class T>
  void field(const char* name, const T& value) {
    out[name] = json::value_from(value);
  }
  template <class T, class Each>
  void list(const char* name, const std::vector<T>& items, Each each) {
    json::array& array = out[name].emplace_array();
    array.reserve(items.size());
    for (const T& item : items) {
      Writer one;
      each(one, item);
      array.push_back(std::move(one.out));
    }
  }
  template <class T, class Walk>
  void object(const char* name, const T& value, Walk walk) {
    Writer one;
    walk(one, value);
    out[name] = std::move(one.out);
  }
};

class Reader {
 public:
  explicit Reader(const json::object& from) : from_(from) {}
  template <class T>
  void field(const char* name, T& value) {
    try {
      value = json::value_to<T>(at(name));
    } catch (const std::exception&) {
      throw std::runtime_error(std::string("\"") + name + "\" is missing or of another type");
    }
  }
  template <class T, class Each>
  void list(const char* name, std::vector<T>& items, Each each) {
    const json::value& value = at(name);
    if (!value.is_array()) throw std::runtime_error(std::string("\"") + name + "\" is no array");
    for (const json::value& entry : value.get_array()) {
      if (!entry.is_object())
        throw std::runtime_error(std::string("\"") + name + "\" holds no objects");
      Reader one(entry.get_object());
      each(one, items.emplace_back());
    }
  }
  template <class T, class Walk>
  void object(const char* name, T& value, Walk walk) {
    const json::value& entry = at(name);
    if (!entry.is_object()) throw std::runtime_error(std::string("\"") + name + "\" is no object");
    Reader one(entry.get_object());
    walk(one, value);
  }

 private:
  const json::value& at(const char* name) const {
    const json::value* found = from_.if_contains(name);
    if (found == nullptr) throw std::runtime_error(std::string("\"") + name + "\" is missing");
    return *found;
  }
  const json::object& from_;
};

// For an enum or an id inside a struct: goes through a number.
template <class Walker, class T, class Number = uint64_t>
void number(Walker& walker, const char* name, T& value) {
  auto plain = static_cast<Number>(value);
  walker.field(name, plain);
  if constexpr (!std::is_const_v<T>) value = static_cast<T>(plain);
}

template <class Walker, class Block>
void walk_place(Walker& walker, Block& place) {
  walker.field("index", place.index);
  walker.field("generation", place.generation);
  number(walker, "physical", place.physical);
}

template <class Walker, class Record>
void walk_move(Walker& walker, Record& record) {
  walker.field("number", record.number);
  walker.field("step", record.step);
  number(walker, "move", record.move);
  number(walker, "block", record.block);
  number(walker, "owner_kind", record.owner_kind);
  walker.field("owner", record.owner);
  number(walker, "reason", record.reason);
  walker.field("position", record.position);
  walker.field("count", record.count);
  walker.object("source", record.source, [](auto& w, auto& place) { walk_place(w, place); });
  walker.object("target", record.target, [](auto& w, auto& place) { walk_place(w, place); });
}

template <class Walker, class Region>
void walk_region(Walker& walker, Region& region) {
  walker.field("offset", region.offset);
  walker.field("block_bytes", region.block_bytes);
  walker.field("blocks", region.blocks);
}

template <class Walker, class Geometry>
void walk_geometry(Walker& walker, Geometry& geometry) {
  walker.field("page_tokens", geometry.page_tokens);
  walker.object("states", geometry.states, [](auto& w, auto& region) { walk_region(w, region); });
  walker.object("pages", geometry.pages, [](auto& w, auto& region) { walk_region(w, region); });
}

template <class Walker, class Counters>
void walk_counters(Walker& walker, Counters& counters) {
  walker.field("opened", counters.opened);
  walker.field("refused", counters.refused);
  walker.field("grown", counters.grown);
  walker.field("grow_refused", counters.grow_refused);
  walker.field("restored", counters.restored);
  walker.field("key_positions", counters.key_positions);
  walker.field("kv_positions", counters.kv_positions);
  walker.field("state_positions", counters.state_positions);
  walker.field("branches", counters.branches);
  walker.field("snapshots_wished", counters.snapshots_wished);
  walker.field("snapshots_granted", counters.snapshots_granted);
  walker.field("donated", counters.donated);
  walker.field("donated_twice", counters.donated_twice);
  walker.field("state_moves", counters.state_moves);
  walker.field("page_moves", counters.page_moves);
  for (size_t i = 0; i < memory::kMissReasons; ++i)
    walker.field(("misses_" + std::to_string(i)).c_str(), counters.misses[i]);
  for (size_t i = 0; i < memory::kEvictionReasons; ++i) {
    walker.field(("evicted_slots_" + std::to_string(i)).c_str(), counters.evicted_slots[i]);
    walker.field(("evicted_pages_" + std::to_string(i)).c_str(), counters.evicted_pages[i]);
  }
}

template <class Walker, class Owners>
void walk_owners(Walker& walker, Owners& owners) {
  walker.field("total", owners.total);
  walker.field("free", owners.free);
  walker.field("cached", owners.cached);
  walker.field("held", owners.held);
  walker.field("pending", owners.pending);
  walker.field("evictable", owners.evictable);
}

template <class Walker, class Side>
void walk_side(Walker& walker, Side& side) {
  walker.object("region", side.region, [](auto& w, auto& region) { walk_region(w, region); });
  walker.field("extent", side.extent);
  walker.field("holes", side.holes);
  walker.field("pinned", side.pinned);
}

template <class Walker, class Layout>
void walk_layout(Walker& walker, Layout& layout) {
  walker.field("arena_bytes", layout.arena_bytes);
  walker.field("unified", layout.unified);
  walker.object("states", layout.states, [](auto& w, auto& side) { walk_side(w, side); });
  walker.object("pages", layout.pages, [](auto& w, auto& side) { walk_side(w, side); });
}

template <class Walker, class Slot>
void walk_slot(Walker& walker, Slot& slot) {
  walker.field("place", slot.physical);
  walker.field("slot", slot.slot.index);
  walker.field("generation", slot.slot.generation);
  number(walker, "role", slot.role);
  walker.field("sequence", slot.sequence.value);
  number(walker, "node", slot.node.index);
}

constexpr uint32_t kNone = memory::NodeId{}.index;

template <class Walker, class Node>
void walk_node(Walker& walker, Node& node) {
  walker.field("node", node.node.index);
  number(walker, "parent", node.parent.index);
  walker.field("root", node.root);
  walker.field("superseded", node.superseded);
  walker.field("namespace", node.name_space);
  walker.field("begin", node.begin);
  walker.field("end", node.end);
  walker.field("pages", node.pages);
  // Generations begin at 1: 0 stands for no checkpoint.
  auto checkpoint = node.checkpoint.value_or(memory::SlotId{});
  walker.field("checkpoint_slot", checkpoint.index);
  walker.field("checkpoint_generation", checkpoint.generation);
  if constexpr (!std::is_const_v<Node>) {
    if (checkpoint.generation != 0) node.checkpoint = checkpoint;
  }
  walker.field("kv_locks", node.kv_locks);
  walker.field("state_locks", node.state_locks);
  walker.field("pins", node.pins);
  walker.field("hits", node.hits);
  walker.field("restores", node.restores);
  walker.field("kv_used", node.kv_used);
  walker.field("state_used", node.state_used);
  walker.field("kv_planter", node.kv_planter);
  walker.field("checkpoint_planter", node.checkpoint_planter);
  walker.field("tokens", node.span);
  walker.field("text", node.text);
}

template <class Walker, class Admission>
void walk_admission(Walker& walker, Admission& admission) {
  walker.field("ticket", admission.ticket);
  walker.field("sequence", admission.sequence.value);
  walker.field("node", admission.node.index);
  auto state = admission.state.value_or(memory::NodeId{}).index;
  walker.field("state", state);
  if constexpr (!std::is_const_v<Admission>) {
    if (state != kNone) admission.state = memory::NodeId{state};
  }
  walker.field("own_pages", admission.own_pages);
  walker.field("borrowed_pages", admission.borrowed_pages);
  walker.field("slots", admission.slots);
}

template <class Walker, class Open>
void walk_open(Walker& walker, Open& open) {
  walker.field("sequence", open.sequence.value);
  walker.field("ticket", open.ticket);
  walker.field("key_positions", open.key_positions);
  walker.field("kv", open.kv);
  walker.field("position", open.position);
  walker.field("deepest", open.deepest);
  walker.field("branch", open.branch);
  number(walker, "reason", open.reason);
  walker.field("refused", open.refused);
  walker.field("evicted_slots", open.evicted_slots);
  walker.field("evicted_pages", open.evicted_pages);
}

template <class Walker, class Report>
void walk_report(Walker& walker, Report& report) {
  walker.field("page_tokens", report.page_tokens);
  walker.field("grid", report.grid);
  walker.field("tick", report.tick);
  walker.object("counters", report.counters, [](auto& w, auto& all) { walk_counters(w, all); });
  walker.object("states", report.owners.states, [](auto& w, auto& own) { walk_owners(w, own); });
  walker.object("pages", report.owners.pages, [](auto& w, auto& own) { walk_owners(w, own); });
  walker.object("layout", report.layout, [](auto& w, auto& layout) { walk_layout(w, layout); });
  walker.list("slots", report.slots, [](auto& w, auto& slot) { walk_slot(w, slot); });
  walker.list("nodes", report.nodes, [](auto& w, auto& node) { walk_node(w, node); });
  walker.list("admissions", report.admissions, [](auto& w, auto& one) { walk_admission(w, one); });
  walker.list("recent", report.recent, [](auto& w, auto& open) { walk_open(w, open); });
}

template <class T, class Walk>
kernels::Result<T> read(const json::object& from, Walk walk) {
  try {
    Reader reader(from);
    T value;
    walk(reader, value);
    return value;
  } catch (const std::exception& failure) {
    return kernels::invalid(failure.what());
  }
}

}  // namespace

std::string sequence_name(memory::SequenceId sequence) {
  return std::to_string(actors::request_of(sequence).value) + "." +
         std::to_string(actors::choice_of(sequence));
}

std::optional<memory::SequenceId> parse_sequence(std::string_view name) {
  uint64_t request = 0;
  uint32_t choice = 0;
  const char* const end = name.data() + name.size();
  const auto first = std::from_chars(name.data(), end, request);
  if (first.ec != std::errc()) return std::nullopt;
  if (first.ptr == end) return memory::SequenceId{request};
  if (*first.ptr != '.' || request >= uint64_t{1} << 48) return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, choice);
  if (second.ec != std::errc() || second.ptr != end || choice >= actors::kChoicesMax)
    return std::nullopt;
  return actors::sequence_of({request}, choice);
}

json::object to_json(const memory::MoveRecord& record) {
  Writer writer;
  walk_move(writer, record);
  return std::move(writer.out);
}
json::object to_json(const memory::MoveGeometry& geometry) {
  Writer writer;
  walk_geometry(writer, geometry);
  return std::move(writer.out);
}
json::object to_json(const memory::CacheReport& report) {
  Writer writer;
  walk_report(writer, report);
  return std::move(writer.out);
}

kernels::Result<memory::CacheReport> report_from_json(const json::object& from) {
  return read<memory::CacheReport>(from, [](auto& r, auto& value) { walk_report(r, value); });
}
kernels::Result<memory::MoveGeometry> geometry_from_json(const json::object& from) {
  return read<memory::MoveGeometry>(from, [](auto& r, auto& value) { walk_geometry(r, value); });
}
kernels::Result<memory::MoveRecord> move_from_json(const json::object& from) {
  return read<memory::MoveRecord>(from, [](auto& r, auto& value) { walk_move(r, value); });
}

}  // namespace net
