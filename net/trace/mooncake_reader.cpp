// Mooncake's jsonl: {"timestamp": ms, "input_length", "output_length", "hash_ids": one id per
// block, a last partial one included}. Ids are global, and so is the clock.
#include <algorithm>

#include "net/trace/prefix_trie.hpp"
#include "net/trace/trace_formats.hpp"

namespace net {
namespace {

constexpr int64_t kIdMax = int64_t{1} << 53;  // what every JSON reader keeps exact

struct Row {
  size_t line = 0;
  TraceRequest request;
  std::vector<uint64_t> hash_ids;
};

template <class Value>
Value required(Fields& fields, std::string_view name, std::optional<Value> value) {
  if (!value) fields.fail(name, "is required");
  return value.value_or(Value{});
}

Row read_row(Fields fields, size_t line, uint32_t block_tokens) {
  Row row{line, {}, {}};
  TraceRequest& request = row.request;
  request.start_s =
      required(fields, "timestamp", fields.number("timestamp", {0, kSeconds.high * 1e3})) / 1e3;
  request.input_tokens = static_cast<uint32_t>(
      required(fields, "input_length", fields.integer("input_length", kTokenCounts)));
  request.output_tokens = static_cast<uint32_t>(
      required(fields, "output_length", fields.integer("output_length", kTokenCounts)));
  const boost::json::array* ids = fields.array("hash_ids");
  if (ids == nullptr) {
    fields.fail("hash_ids", "is required");
    return row;
  }
  for (size_t i = 0; i < ids->size(); ++i) {
    const auto id = exact_integer((*ids)[i]);
    if (!id || *id < 0 || *id > kIdMax) {
      fields.expected(element("hash_ids", i), "an integer between 0 and 2^53", (*ids)[i]);
      return row;
    }
    row.hash_ids.push_back(static_cast<uint64_t>(*id));
  }
  const std::string problem = block_count_problem(ids->size(), request.input_tokens, block_tokens);
  if (!problem.empty()) fields.fail("hash_ids", problem);
  return row;
}

}  // namespace

Trace read_mooncake(const TraceFile& file, const TraceOptions& options) {
  Trace trace;
  trace.format = TraceFormat::kMooncake;
  trace.block_tokens = options.block_tokens != 0 ? options.block_tokens : kMooncakeBlockTokens;
  trace.has_prefixes = true;
  std::vector<Row> rows;
  for_each_json_row(file, [&](Fields fields, size_t line) {
    rows.push_back(read_row(fields, line, trace.block_tokens));
  });
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.request.start_s < b.request.start_s;
  });
  PrefixTrie prompts;
  for (const Row& row : rows) {
    const auto index = static_cast<uint32_t>(trace.requests.size());
    TraceRequest request = row.request;
    const SharedPrefix shared = prompts.insert(row.hash_ids, index);
    request.session = index;
    request.blocks = static_cast<uint32_t>(row.hash_ids.size());
    request.shared_blocks = request.shared_blocks_with_answers = shared.blocks;
    request.shared_with = shared.with;
    trace.sessions.push_back({"line " + std::to_string(row.line), request.start_s, 1});
    trace.requests.push_back(std::move(request));
  }
  return trace;
}

std::string block_count_problem(uint64_t blocks, uint32_t tokens, uint32_t block_tokens) {
  const uint64_t whole = tokens / block_tokens, all = whole + (tokens % block_tokens != 0 ? 1 : 0);
  if (blocks == whole || blocks == all) return {};
  return "holds " + std::to_string(blocks) + " blocks; a prompt of " + std::to_string(tokens) +
         " tokens has " + std::to_string(whole) + (all != whole ? " whole ones" : "") + " of " +
         std::to_string(block_tokens) + " tokens (--block-tokens says how many)";
}

}  // namespace net
