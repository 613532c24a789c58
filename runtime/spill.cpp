#include "runtime/spill.hpp"

#include <cstdio>

#include "kernels/base/steady_clock.hpp"

namespace runtime {
namespace {

void count(SpillReport& report, memory::BlockKind kind) {
  ++(kind == memory::BlockKind::kState ? report.states : report.pages);
}

}  // namespace

std::string spill_text(const SpillReport& report) {
  char text[96];
  std::snprintf(text, sizeof text, "%u states and %u pages (%.1f MB)", report.states, report.pages,
                static_cast<double>(report.bytes) / 1e6);
  return text;
}

SpillReport write_spill(const SpillTarget& target, const memory::Spill& spill,
                        const SpillFetch& fetch) {
  SpillReport report;
  if (target.directory.empty()) return report;
  if (kernels::steady_now_ns() >= spill.deadline_ns) {  // an older file is better than none
    report.whole = false;
    return report;
  }
  memory::SpillWriter writer(memory::spill_path(target.directory), target.header);
  for (const memory::SpillItem& item : spill.items) {
    report.whole = kernels::steady_now_ns() < spill.deadline_ns;
    if (!report.whole) break;
    const auto source = fetch(item);
    if (!source) continue;  // what needs it stays unused
    if (!writer.add({item.kind, item.at, source->checksum}, source->bytes)) break;
    count(report, item.kind);
  }
  const auto size = writer.finish();
  if (!size) return {0, 0, 0, false, size.error().message};
  report.bytes = *size;
  return report;
}

SpillReport load_spill(const SpillTarget& target, memory::HybridCache& cache, HostArena& host) {
  SpillReport report;
  if (target.directory.empty()) return report;
  auto reader = memory::SpillReader::open(memory::spill_path(target.directory), target.header);
  if (!reader) {
    if (reader.error().code != kernels::ErrorCode::kNotFound)
      report = {0, 0, 0, false, reader.error().message};
    return report;
  }
  for (size_t i = 0; i < reader->records().size(); ++i) {
    const memory::SpillRecord& record = reader->records()[i];
    const uint64_t bytes = reader->bytes_of(record);
    const auto block = cache.adopt(record.kind, record.at);
    report.whole = report.whole && block;
    if (!block) break;  // full: what comes later is worth less, and may need this one
    // Should the file change right now, the checksum tells when the copy is staged in.
    std::byte* target_bytes = host.add(*block, bytes);
    if (!reader->read(i, target_bytes)) report.whole = false;
    host.seal(*block, record.checksum);
    count(report, record.kind);
    report.bytes += bytes;
  }
  return report;
}

}  // namespace runtime
