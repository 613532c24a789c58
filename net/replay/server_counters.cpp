#include "net/replay/server_counters.hpp"

#include <algorithm>
#include <charconv>

#include "net/replay/replay_metrics.hpp"

namespace net {

namespace json = boost::json;

namespace {

constexpr std::string_view kPrefix = "sluice:", kKind = "kind=\"";

// "name{labels} value" under the name by which it is kept; empty: it is not.
std::string name_of(std::string_view sample) {
  const size_t open = sample.find('{');
  const size_t space = sample.find(' ');
  std::string name(sample.substr(0, std::min(open, space)));
  if (open >= space) return name;
  const std::string_view labels = sample.substr(open, sample.rfind('}') - open);
  if (labels.find("le=\"") != labels.npos || labels.find("code=\"") != labels.npos) return {};
  const size_t kind = labels.find(kKind);
  if (kind == labels.npos) return name;
  const std::string_view value = labels.substr(kind + kKind.size());
  return name.append(".").append(value.substr(0, value.find('"')));
}

}  // namespace

ServerCounters::ServerCounters(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.substr(0, kPrefix.size()) != kPrefix) continue;
    line.remove_prefix(kPrefix.size());
    const std::string_view number = line.substr(line.rfind(' ') + 1);
    double value = 0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
    const std::string name = name_of(line);
    if (read.ec == std::errc() && !name.empty()) values_[name] = value;
  }
}

double ServerCounters::value(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? 0 : found->second;
}

void PeakUse::see(const ServerCounters& now) {
  rows = std::max(rows, now.value("num_running_reqs"));
  states = std::max(states, now.value("num_states") - now.value("mamba_available_tokens"));
  if (const double page = now.value("page_size"); page > 0)
    pages = std::max(pages, now.value("num_pages") - now.value("kv_available_tokens") / page);
}

json::object server_result(const ServerCounters& before, const ServerCounters& after,
                           const PeakUse& peak, double elapsed_s) {
  const auto since = [&](const std::string& name) {
    return after.value(name) - before.value(name);
  };
  const auto count = [](double value) { return static_cast<uint64_t>(std::max(value, 0.0)); };
  json::object out;
  out["kv_hit_tokens"] = count(since("prefix_kv_hit_tokens_total"));
  out["steps"] = count(since("steps_total"));
  out["busy_share"] = ratio(since("worker_busy_seconds_total"), elapsed_s);
  out["peak_rows"] = count(peak.rows);
  out["retracted"] = count(since("num_retracted_requests_total"));
  out["recomputed_tokens"] = count(since("recomputed_tokens_total"));
  out["evicted_states"] = count(since("evicted_total.state"));
  out["evicted_pages"] = count(since("evicted_total.page"));
  out["moves"] = count(since("block_moves_total"));
  out["snapshots"] = count(since("snapshots_total"));
  out["snapshots_skipped"] = count(since("snapshots_skipped_total"));
  out["host_states_in"] = count(since("host_staged_in_total.state"));
  out["host_pages_in"] = count(since("host_staged_in_total.page"));
  out["host_states_out"] = count(since("host_staged_out_total.state"));
  out["host_pages_out"] = count(since("host_staged_out_total.page"));
  out["peak_states"] = count(peak.states);
  out["peak_pages"] = count(peak.pages);
  out["states_max"] = count(after.value("num_states_max"));
  out["pages_max"] = count(after.value("num_pages_max"));
  return out;
}

}  // namespace net
