#include "memory/cache_log.hpp"

#include <utility>

namespace memory {
namespace {

constexpr uint64_t kMagic = 0x3165686361636c73;  // "slcache1"
enum class Record : uint8_t { kRequest, kFlush, kOrder, kReply };

uint64_t digest_of(const CacheReply& reply) {
  EventDigest digest;
  digest.add(reply);
  return digest.value();
}

}  // namespace

CacheLog::CacheLog(const std::string& path, const CacheSetup& setup) : out_(path, kMagic, setup) {}

void CacheLog::handle(const CacheRequest& request) { out_.write(Record::kRequest, request); }
void CacheLog::flush() { out_.write(Record::kFlush); }
void CacheLog::change(const NodeOrder& order) {
  out_.write(Record::kOrder, order.action, order.node.index);
}
void CacheLog::asked() { out_.flush(); }
void CacheLog::reply(const CacheReply& reply) { out_.write(Record::kReply, digest_of(reply)); }

EventLogCheck check_cache_log(const std::string& path) {
  CacheSetup setup;
  EventLogReader in(path, kMagic, setup);
  const auto cache = make_cache(setup);
  CacheReply reply;
  EventLogCheck check;
  for (Record record{}; in.read(record);) {
    if (record == Record::kRequest) {
      CacheRequest request;
      if (!in.read(request)) break;
      cache->handle(request, reply);
      continue;
    }
    if (record == Record::kFlush) {
      cache->flush(reply);
      continue;
    }
    if (record == Record::kOrder) {
      NodeOrder order;
      if (!in.read(order.action, order.node.index)) break;
      (void)cache->change(order, reply);  // refused then as it is now
      continue;
    }
    uint64_t digest = 0;
    if (!in.read(digest)) break;
    ++check.answers;
    if (digest_of(reply) != digest) {
      check.difference =
          path + ": reply " + std::to_string(check.answers) + " differs from the recorded one";
      return check;
    }
    reply = {};
  }
  return check;
}

}  // namespace memory
