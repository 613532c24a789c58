#include "runtime/scheduler_log.hpp"

#include <utility>
#include <vector>

namespace runtime {

using memory::serialize;  // for this namespace's structs with fields()

template <class Archive>
void save(Archive& archive, const SharedTokens& tokens) {
  archive(tokens.ids());
}
template <class Archive>
void load(Archive& archive, SharedTokens& tokens) {
  std::vector<TokenId> ids;
  archive(ids);
  tokens = SharedTokens(std::move(ids));
}

namespace {

constexpr uint64_t kMagic = 0x31646568637373;  // "ssched1"
enum class Record : uint8_t { kEvent, kPlan };

// Of the plans and the cache's requests; what sessions are told follows from the same state.
uint64_t digest_of(std::span<const SchedulerOutput> outputs) {
  memory::EventDigest digest;
  for (const SchedulerOutput& output : outputs) {
    if (const auto* plan = std::get_if<StepPlan>(&output)) digest.add(*plan);
    if (const auto* request = std::get_if<memory::CacheRequest>(&output)) digest.add(*request);
  }
  return digest.value();
}

}  // namespace

SchedulerLog::SchedulerLog(const std::string& path, const SchedulerConfig& config)
    : out_(path, kMagic, config) {}

void SchedulerLog::absorb(const SchedulerEvent& event) { out_.write(Record::kEvent, event); }

void SchedulerLog::before_plan() { out_.flush(); }

void SchedulerLog::plan(uint64_t now_us, std::span<const SchedulerOutput> outputs) {
  out_.write(Record::kPlan, now_us, digest_of(outputs));
}

memory::EventLogCheck check_scheduler_log(const std::string& path) {
  SchedulerConfig config;
  memory::EventLogReader in(path, kMagic, config);
  Scheduler scheduler(config);
  std::vector<SchedulerOutput> outputs;
  memory::EventLogCheck check;
  for (Record record{}; in.read(record);) {
    if (record == Record::kEvent) {
      SchedulerEvent event;
      if (!in.read(event)) break;
      scheduler.absorb(std::move(event), outputs);
      continue;
    }
    uint64_t now_us = 0, digest = 0;
    if (!in.read(now_us, digest)) break;
    scheduler.plan(now_us, outputs);
    ++check.answers;
    if (digest_of(outputs) != digest) {
      check.difference = path + ": plan " + std::to_string(check.answers) + " (at " +
                         std::to_string(now_us) + " us) differs from the recorded one";
      return check;
    }
    outputs.clear();
  }
  return check;
}

}  // namespace runtime
