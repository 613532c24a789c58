#include "memory/hybrid_cache.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "kernels/base/verify.hpp"

namespace memory {
namespace {

constexpr size_t kRecentMax = 256;  // admissions that a console can ask about

template <class Request>
SequenceId asker(const Request& request) {
  return request.sequence;
}
SequenceId asker(const Forget&) { return {}; }

EvictionReason counted_as(FreeReason reason) {
  if (reason == FreeReason::kPathCap) return EvictionReason::kPathCap;
  return reason == FreeReason::kPoisoned ? EvictionReason::kPoisoned : EvictionReason::kRoom;
}

}  // namespace

HybridCache::HybridCache(const TreeConfig& config, std::unique_ptr<BlockPool> pool,
                         std::unique_ptr<EvictionPolicy> policy, uint64_t host_bytes)
    : tree_(config),
      pool_(std::move(pool)),
      policy_(std::move(policy)),
      host_({host_bytes, pool_->state_region().block_bytes, pool_->page_region().block_bytes}) {
  VERIFY(policy_ != nullptr);
}

void HybridCache::handle(const CacheRequest& request, CacheReply& out) {
  journal_.begin(out, std::visit([](const auto& one) { return asker(one); }, request));
  std::visit([&](const auto& one) { on(one, out); }, request);
  pool_->settle(out.commands);
  journal_.end();
#ifndef NDEBUG
  check();
#endif
}

void HybridCache::flush(CacheReply& out) {
  journal_.begin(out, {});
  while (evict_one({true, true, true}, out, FreeReason::kFlushed)) {
  }
  host_.clear(std::nullopt, out.commands);
  pool_->settle(out.commands);
  journal_.end();
}

uint32_t HybridCache::positions_max() const {
  const uint64_t positions = pool_->pages_beside(1) * tree_.config().page_tokens;
  return static_cast<uint32_t>(std::min<uint64_t>(positions, std::numeric_limits<uint32_t>::max()));
}

// ---- room ----

template <class Id>
void HybridCache::free(BlockKind kind, Id id, FreeReason reason, MoveRecord last) {
  last.block = kind;
  journal_.free(last, {id.index, id.generation, pool_->physical(id)}, reason);
  pool_->release(id);
}

void HybridCache::free_own(SlotId slot, SequenceId sequence, FreeReason reason) {
  free(BlockKind::kState, slot, reason, move_by(MoveKind::kFree, BlockKind::kState, sequence));
}

void HybridCache::give_back(Freed& freed, FreeReason reason, NodeId from, CacheReply& out) {
  const EvictionReason counted = counted_as(reason);
  if (reason == FreeReason::kRoom || reason == FreeReason::kDropped) stage_out(freed, out);
  const auto index = static_cast<size_t>(counted);
  counters_.evicted_slots[index] += freed.slots.size();
  counters_.evicted_pages[index] += freed.pages.size();
  const MoveRecord last = move_under(MoveKind::kFree, BlockKind::kState, from);
  for (const Freed::Slot& slot : freed.slots) free(BlockKind::kState, slot.id, reason, last);
  for (const Freed::Page& page : freed.pages) free(BlockKind::kPage, page.id, reason, last);
  freed = {};
}

bool HybridCache::evict_one(Shortage shortage, CacheReply& out, FreeReason reason) {
  policy_->refresh(tree_, tree_.take_changed());
  const auto victim = policy_->pick(tree_, shortage);
  if (!victim) return false;
  Freed freed;
  tree_.evict(*victim, freed);
  give_back(freed, reason, *victim, out);
  return true;
}

bool HybridCache::make_room(BlockWant want, CacheReply& out) {
  if (pool_->fits(want)) return true;
  if (!pool_->fits(want, {tree_.evictable_slots(), tree_.evictable_pages()})) return false;
  while (!pool_->fits(want)) {
    Shortage shortage{!pool_->fits({want.slots, 0}), !pool_->fits({0, want.pages}),
                      pool_->unified()};
    if (!shortage.slots && !shortage.pages) shortage.slots = shortage.pages = true;  // together
    if (!evict_one(shortage, out)) return false;  // a copy pins what would have to move
  }
  return true;
}

std::optional<SlotId> HybridCache::acquire_slot(CacheReply& out) {
  if (!make_room({1, 0}, out)) return std::nullopt;
  const auto blocks = pool_->acquire({1, 0}, out.commands);
  VERIFY(blocks.has_value());
  return blocks->slots.front();
}

// ---- messages ----

void HybridCache::on(const Open& request, CacheReply& out) {
  VERIFY(request.ticket != 0);
  VERIFY(ledger_.find(request.ticket) == nullptr);
  VERIFY(request.restore_limit < request.key.elements.size());
  const CacheCounters before = counters_;
  Match match = tree_.match(request.key, request.positions, request.restore_limit);
  const HostMatch host = match_host(request, match);
  const uint32_t from_device = match.position;
  if (host.position > 0) {
    match.checkpoint.reset();
    match.position = host.position;
    if (match.branch <= match.position) match.branch = 0;
  }
  Receipt receipt = tree_.acquire(request.key.name_space, match);

  const uint32_t page = tree_.config().page_tokens;
  const BlockWant want{1, pages_for(request.positions, page) - match.kv / page};
  bool room = make_room(want, out), gave_up = false;
  if (!room && match.checkpoint) {
    tree_.release_state(receipt);
    match.checkpoint.reset();
    match.position = 0;
    gave_up = true;
    room = make_room(want, out);
  }
  OpenRecord record;
  record.sequence = request.sequence;
  record.ticket = request.ticket;
  record.key_positions = static_cast<uint32_t>(request.key.elements.size());
  record.kv = match.kv;
  record.position = match.position;
  record.deepest = match.deepest;
  record.branch = match.branch;
  record.refused = !room;
  if (!room) {
    release_host(host);
    refuse(request, receipt, record, out);
    return;
  }
  Admission admission = admit(request, match, receipt, host, out);
  if (host.position > 0) {
    ++counters_.host_restored;
    counters_.host_positions += host.position - from_device;
  }

  const auto room_index = static_cast<size_t>(EvictionReason::kRoom);
  record.evicted_slots =
      static_cast<uint32_t>(counters_.evicted_slots[room_index] - before.evicted_slots[room_index]);
  record.evicted_pages =
      static_cast<uint32_t>(counters_.evicted_pages[room_index] - before.evicted_pages[room_index]);
  counters_.snapshots_wished += request.snapshots;
  counters_.snapshots_granted += admission.snapshots.size();
  count_open(request, match, gave_up, record);

  Opened answer;
  answer.sequence = request.sequence;
  answer.ticket = request.ticket;
  answer.working = admission.working;
  answer.snapshots = admission.snapshots;
  answer.pages = admission.pages;
  answer.shared = std::max(match.kv, host.position);
  if (match.checkpoint) answer.checkpoint = tree_.node(*match.checkpoint).checkpoint;
  answer.staged = host.position > 0;
  answer.position = match.position;
  answer.branch = match.branch;
  ledger_.open(request.ticket, std::move(admission));
  out.answers.push_back(std::move(answer));
}

// There is room for it.
Admission HybridCache::admit(const Open& request, const Match& match, const Receipt& receipt,
                             const HostMatch& host, CacheReply& out) {
  const uint32_t page = tree_.config().page_tokens;
  auto blocks =
      pool_->acquire({1, pages_for(request.positions, page) - match.kv / page}, out.commands);
  VERIFY(blocks.has_value());
  stage_in(host, *blocks, out);
  release_host(host);
  Admission admission{request.sequence, request.key, {}, {}, blocks->slots.front(), {}, receipt};
  tree_.collect_pages(receipt.node, admission.pages);
  VERIFY(admission.pages.size() == match.kv / page);
  admission.borrowed.assign(admission.pages.size(), true);
  admission.pages.insert(admission.pages.end(), blocks->pages.begin(), blocks->pages.end());
  admission.borrowed.resize(admission.pages.size(), false);
  for (uint32_t i = 0; i < request.snapshots; ++i) {
    const auto slot = acquire_slot(out);
    if (!slot) break;
    admission.snapshots.push_back(*slot);
  }
  return admission;
}

void HybridCache::refuse(const Open& request, const Receipt& receipt, const OpenRecord& record,
                         CacheReply& out) {
  Freed freed;
  tree_.release(receipt, freed);
  give_back(freed, FreeReason::kDropped, receipt.node, out);
  ++counters_.refused;
  this->record(record);
  out.answers.push_back(Refused{request.sequence, request.ticket});
}

void HybridCache::count_open(const Open& request, const Match& match, bool gave_up,
                             OpenRecord record) {
  ++counters_.opened;
  counters_.restored += match.position > 0 ? 1 : 0;
  counters_.branches += match.branch != 0 ? 1 : 0;
  counters_.key_positions += request.key.elements.size();
  counters_.kv_positions += match.kv;
  counters_.state_positions += match.position;
  const uint32_t wanted = std::min(match.kv, request.restore_limit);
  if (gave_up) {
    record.reason = MissReason::kNoRoom;
  } else if (match.kv == 0 && match.position == 0) {
    record.reason = MissReason::kCold;
  } else if (match.deepest > match.position) {
    record.reason = MissReason::kRestoreLimit;
  } else if (match.position < wanted / tree_.config().grid * tree_.config().grid) {
    record.reason = MissReason::kNoCheckpoint;
  }
  ++counters_.misses[static_cast<size_t>(record.reason)];
  this->record(record);
}

void HybridCache::record(const OpenRecord& record) {
  recent_.push_back(record);
  if (recent_.size() > kRecentMax) recent_.pop_front();
}

void HybridCache::on(const Grow& request, CacheReply& out) {
  Admission& admission = ledger_.at(request.ticket);
  if (!make_room({0, request.pages}, out)) {
    ++counters_.grow_refused;
    out.answers.push_back(Refused{request.sequence, request.ticket});
    return;
  }
  auto blocks = pool_->acquire({0, request.pages}, out.commands);
  VERIFY(blocks.has_value());
  ++counters_.grown;
  admission.pages.insert(admission.pages.end(), blocks->pages.begin(), blocks->pages.end());
  admission.borrowed.resize(admission.pages.size(), false);
  out.answers.push_back(Grown{request.sequence, request.ticket, std::move(blocks->pages)});
}

void HybridCache::on(const Restored& request, CacheReply&) {
  tree_.release_state(ledger_.at(request.ticket).receipt);
}

void HybridCache::on(const Donate& request, CacheReply& out) {
  Admission& admission = ledger_.at(request.ticket);
  const auto slot = std::find(admission.snapshots.begin(), admission.snapshots.end(), request.slot);
  VERIFY(slot != admission.snapshots.end());
  auto& elements = admission.key.elements;
  elements.insert(elements.end(), request.tail.begin(), request.tail.end());
  const uint32_t page = tree_.config().page_tokens;
  VERIFY(request.position <= elements.size());
  VERIFY(request.position / page <= admission.pages.size());

  RadixTree::Plant plant{admission.key.name_space,
                         std::span(elements).first(request.position),
                         request.position,
                         std::span(admission.pages).first(request.position / page),
                         request.slot,
                         request.ticket};
  // What it has locked already is its key's own: only what lies beyond is compared.
  if (tree_.node(admission.receipt.node).end <= request.position)
    plant.from = admission.receipt.node;
  const Inserted inserted = tree_.insert(plant);
  donate_records(request, inserted, admission);
  for (uint32_t i = inserted.first_new / page; i < request.position / page; ++i) {
    VERIFY(!admission.borrowed[i]);
    admission.borrowed[i] = true;
  }
  if (request.position > tree_.node(admission.receipt.node).end) {
    tree_.lower(admission.receipt, inserted.node);
  }
  Refilled answer{request.sequence, request.ticket, std::nullopt};
  if (!inserted.attached) {
    ++counters_.donated_twice;
    if (request.refill) {
      answer.slot = request.slot;
    } else {
      free_own(request.slot, request.sequence, FreeReason::kTwice);
      admission.snapshots.erase(slot);
    }
  } else {
    ++counters_.donated;
    admission.snapshots.erase(slot);
    tree_.supersede(inserted.node, request.ticket);
    Freed freed;
    tree_.enforce_cap(inserted.node, freed);
    give_back(freed, FreeReason::kPathCap, inserted.node, out);
    if (request.refill) {
      tree_.lock_state(inserted.node);  // what was just planted does not pay for its refill
      answer.slot = acquire_slot(out);
      tree_.unlock_state(inserted.node);
      if (answer.slot) admission.snapshots.push_back(*answer.slot);
    }
  }
  out.answers.push_back(answer);
}

void HybridCache::donate_records(const Donate& request, const Inserted& inserted,
                                 const Admission& admission) {
  const auto add = [&](BlockKind kind, auto id, uint32_t position) {
    MoveRecord record = move_under(MoveKind::kDonate, kind, inserted.node);
    record.source = {id.index, id.generation, pool_->physical(id)};
    record.position = position;
    journal_.add(record);
  };
  const uint32_t page = tree_.config().page_tokens;
  for (uint32_t begin = inserted.first_new; begin < request.position; begin += page)
    add(BlockKind::kPage, admission.pages[begin / page], begin);
  if (inserted.attached) add(BlockKind::kState, request.slot, request.position);
}

void HybridCache::on(const Drop& request, CacheReply& out) {
  if (ledger_.find(request.ticket) == nullptr) return;
  const Admission closed = ledger_.close(request.ticket);
  free_own(closed.working, request.sequence, FreeReason::kDropped);
  for (const SlotId slot : closed.snapshots)
    free_own(slot, request.sequence, FreeReason::kDropped);
  const MoveRecord last = move_by(MoveKind::kFree, BlockKind::kPage, request.sequence);
  for (size_t i = 0; i < closed.pages.size(); ++i) {
    if (!closed.borrowed[i]) free(BlockKind::kPage, closed.pages[i], FreeReason::kDropped, last);
  }
  Freed freed;
  tree_.release(closed.receipt, freed);
  const auto left = request.poisoned ? FreeReason::kPoisoned : FreeReason::kDropped;
  give_back(freed, left, closed.receipt.node, out);
  if (!request.poisoned) return;
  // No pin keeps what it computed.
  for (auto pin = pins_.begin(); pin != pins_.end();) {
    bool spoilt = false;
    for (NodeId id = pin->first; !tree_.node(id).root; id = tree_.node(id).parent) {
      const RadixNode& node = tree_.node(id);
      spoilt = spoilt || node.kv_planter == request.ticket ||
               node.checkpoint_planter == request.ticket;
    }
    const std::vector<Receipt> pins = spoilt ? pin->second : std::vector<Receipt>();
    pin = spoilt ? pins_.erase(pin) : std::next(pin);
    for (const Receipt& receipt : pins) tree_.release(receipt, freed);
  }
  tree_.poison(closed.key, request.ticket, freed);
  give_back(freed, FreeReason::kPoisoned, closed.receipt.node, out);
  // The host does not know who computed what, and this should never happen: all that the request
  // could have been a part of goes.
  host_.clear(closed.key.name_space, out.commands);
}

void HybridCache::on(const Forget& request, CacheReply& out) {
  for (const HostBlock block : request.blocks)
    counters_.host_lost += host_.forget(block, out.commands) ? 1 : 0;
}

}  // namespace memory
