// The facts of a trace as JSON and as text.
#include <algorithm>
#include <boost/json/array.hpp>

#include "net/text_format.hpp"
#include "net/trace/trace_facts.hpp"
#include "net/trace/trace_reader.hpp"

namespace net {
namespace json = boost::json;

namespace {

constexpr size_t kBarWidth = 48;

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// 24015 as "24,015".
std::string grouped(uint64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

json::object distribution_json(const Distribution& values) {
  json::array from, count;
  for (size_t i = 0; i < values.buckets.size(); ++i) {
    from.push_back(bucket_begin(i));
    count.push_back(values.buckets[i]);
  }
  return {{"total", values.total},
          {"mean", values.mean()},
          {"p50", values.p50},
          {"p90", values.p90},
          {"p99", values.p99},
          {"max", values.max},
          {"histogram", {{"from", std::move(from)}, {"count", std::move(count)}}}};
}

std::string distribution_line(const char* name, const Distribution& values) {
  return format("%-22s mean %10.0f   p50 %9s   p90 %9s   p99 %9s   max %9s\n", name, values.mean(),
                grouped(values.p50).c_str(), grouped(values.p90).c_str(),
                grouped(values.p99).c_str(), grouped(values.max).c_str());
}

std::string histogram_text(const char* name, const Distribution& values) {
  std::string text = format("\n%s\n", name);
  if (values.count == 0) return text;
  const uint64_t most = *std::max_element(values.buckets.begin(), values.buckets.end());
  size_t first = 0;
  while (values.buckets[first] == 0) ++first;
  for (size_t i = first; i < values.buckets.size(); ++i) {
    const uint64_t count = values.buckets[i];
    // Something is drawn for what is there at all.
    const auto width = std::max<size_t>(count > 0 ? 1 : 0, count * kBarWidth / most);
    text += format("%11s -%10s %9s  %s\n", grouped(bucket_begin(i)).c_str(),
                   grouped(i == 0 ? 0 : bucket_begin(i + 1) - 1).c_str(), grouped(count).c_str(),
                   std::string(width, '#').c_str());
  }
  return text;
}

std::string prefixes_text(const Trace& trace, const TraceFacts& facts) {
  if (!trace.has_prefixes) return "prefixes               none: the trace holds lengths alone\n";
  const auto percent = [&](uint64_t part) { return 100 * share(part, facts.requests); };
  std::string text = format(
      "prefixes               %s blocks of %u tokens, %s of them in an earlier prompt: ideal hit "
      "rate %.2f %%\n",
      grouped(facts.blocks).c_str(), trace.block_tokens, grouped(facts.ideal_hit_blocks).c_str(),
      100 * share(facts.ideal_hit_blocks, facts.blocks));
  if (facts.ideal_hit_blocks_with_answers != facts.ideal_hit_blocks)
    text += format("%-22s %s blocks in an earlier prompt or its answer: %.2f %%\n", "",
                   grouped(facts.ideal_hit_blocks_with_answers).c_str(),
                   100 * share(facts.ideal_hit_blocks_with_answers, facts.blocks));
  text += format(
      "prompts                %.1f %% extend an earlier one, %.1f %% part from one midway, %.1f %% "
      "are cold; %s branch points\n",
      percent(facts.extending), percent(facts.diverging), percent(facts.cold),
      grouped(facts.branch_points).c_str());
  return text;
}

}  // namespace

json::object facts_json(const Trace& trace, const TraceFacts& facts) {
  json::object out;
  out["format"] = std::string(format_name(trace.format));
  out["requests"] = facts.requests;
  out["sessions"] = facts.sessions;
  out["conversations"] = facts.conversations;
  out["clock"] = trace.clock == TraceClock::kShared ? "shared" : "own";
  out["span_s"] = facts.span_s;
  out["timed_answers"] = facts.timed_answers;
  out["has_prefixes"] = trace.has_prefixes;
  out["block_tokens"] = trace.block_tokens;
  out["blocks"] = facts.blocks;
  out["ideal_hit_blocks"] = facts.ideal_hit_blocks;
  out["ideal_hit_rate"] = share(facts.ideal_hit_blocks, facts.blocks);
  out["ideal_hit_blocks_with_answers"] = facts.ideal_hit_blocks_with_answers;
  out["cold"] = facts.cold;
  out["extending"] = facts.extending;
  out["diverging"] = facts.diverging;
  out["branch_points"] = facts.branch_points;
  out["input_tokens"] = distribution_json(facts.input_tokens);
  out["output_tokens"] = distribution_json(facts.output_tokens);
  out["context_tokens"] = distribution_json(facts.context_tokens);
  out["session_requests"] = distribution_json(facts.session_requests);
  out["session_context_tokens"] = distribution_json(facts.session_context_tokens);
  return out;
}

std::string facts_text(const Trace& trace, const TraceFacts& facts) {
  const bool own = trace.clock == TraceClock::kOwn;
  std::string text =
      format("format                 %s\n", std::string(format_name(trace.format)).c_str());
  text += format("requests               %s in %s sessions, %s conversations\n",
                 grouped(facts.requests).c_str(), grouped(facts.sessions).c_str(),
                 grouped(facts.conversations).c_str());
  if (facts.span_s == 0)
    text += "time                   not recorded\n";
  else
    text += format("time                   %.1f s, %s; %s answers are timed\n", facts.span_s,
                   own ? "the longest session (each has a clock of its own)"
                       : "from the first request to the last",
                   grouped(facts.timed_answers).c_str());
  text += prefixes_text(trace, facts) + "\n";
  text += distribution_line("input tokens", facts.input_tokens);
  text += distribution_line("output tokens", facts.output_tokens);
  text += distribution_line("context tokens", facts.context_tokens);
  text += distribution_line("largest of a session", facts.session_context_tokens);
  text += distribution_line("requests of a session", facts.session_requests);
  text += histogram_text("input tokens", facts.input_tokens);
  text += histogram_text("output tokens", facts.output_tokens);
  text += histogram_text("context tokens", facts.context_tokens);
  return text;
}

}  // namespace net
