// The cache manager's part of an event log: every request and a digest of every reply, enough to
// run the core again without anybody around it and to see whether it answers the same.
#pragma once

#include <cstdint>
#include <string>

#include "memory/cache_setup.hpp"
#include "memory/event_log.hpp"

namespace memory {

class CacheLog {
 public:
  CacheLog(const std::string& path, const CacheSetup& setup);
  // As the calls of HybridCache since the last reply(), in order.
  void handle(const CacheRequest& request);
  void flush();
  void change(const NodeOrder& order);
  void asked();                         // no more until the reply: it may be the last
  void reply(const CacheReply& reply);  // to all of them

 private:
  EventLogWriter out_;
};

// Feeds the log to a fresh cache. Throws std::runtime_error naming the file if it is no such log.
EventLogCheck check_cache_log(const std::string& path);

}  // namespace memory
