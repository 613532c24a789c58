// The csv of kv-cache-tester sessions: a row per request, with the earlier row whose prompt it
// shares most blocks with. A sub-agent's t counts from its own start, which the file does not
// give: it is taken to be the end of the parent's latest answer before which, and before the
// parent's next request, the sub-agent has time to run.
#include <algorithm>
#include <map>

#include "net/trace/agent_session.hpp"
#include "net/trace/csv_table.hpp"
#include "net/trace/trace_formats.hpp"

namespace net {
namespace {

constexpr double kClockSlack_s = 1;  // t is in whole seconds, api_time is not

struct Columns {
  explicit Columns(const CsvTable& table)
      : trace(table.column("trace")),
        conversation(table.column("conv")),
        parent(table.column("parent_conv")),
        request(table.column("req")),
        t(table.column("t")),
        input(table.column("in")),
        output(table.column("out")),
        api_time(table.column("api_time")),
        think_time(table.column("think_time")),
        blocks(table.column("n_blocks")),
        lcp_blocks(table.column("lcp_blocks")),
        lcp_request(table.column("lcp_req")) {}
  size_t trace, conversation, parent, request, t, input, output, api_time, think_time, blocks,
      lcp_blocks, lcp_request;
};

class TreeReader {
 public:
  TreeReader(const TraceFile& file, uint32_t block_tokens)
      : table_(file), columns_(table_), block_tokens_(block_tokens) {}

  void read(Trace& trace);

 private:
  void read_request();
  void read_shared(TraceRequest& request) const;
  uint32_t conversation_of_row();
  void place_sub_agents();
  void finish_session(Trace& trace);

  CsvTable table_;
  const Columns columns_;
  const uint32_t block_tokens_;
  AgentSession session_;                     // under way
  std::map<std::string, uint32_t> numbers_;  // of its conversations, by their names
  std::map<std::string, size_t> lines_;      // where each session began
};

void TreeReader::read(Trace& trace) {
  while (table_.next()) {
    const std::string name(table_.text(columns_.trace));
    if (session_.requests.empty() || name != session_.name) {
      finish_session(trace);
      session_.name = name;
      const auto [found, fresh] = lines_.emplace(name, table_.line());
      if (!fresh)
        table_.fail("trace " + name + " began in line " + std::to_string(found->second) +
                    "; its rows must stand together");
    }
    read_request();
  }
  finish_session(trace);
}

void TreeReader::read_request() {
  const auto index = static_cast<int64_t>(session_.requests.size());
  if (table_.text(columns_.request) != std::to_string(index))
    table_.expected(columns_.request, std::to_string(index) + ", as rows of a trace count up");
  TraceRequest request;
  request.conversation = conversation_of_row();
  request.start_s = table_.number(columns_.t, kSeconds);
  request.input_tokens = static_cast<uint32_t>(table_.integer(columns_.input, kTokenCounts));
  request.output_tokens = static_cast<uint32_t>(table_.integer(columns_.output, kTokenCounts));
  request.service_s = table_.number_or_nothing(columns_.api_time, kSeconds).value_or(0);
  request.blocks = static_cast<uint32_t>(table_.integer(columns_.blocks, kTokenCounts));
  const std::string problem =
      block_count_problem(request.blocks, request.input_tokens, block_tokens_);
  if (!problem.empty()) table_.fail("n_blocks " + problem);
  read_shared(request);
  const TraceRequest* before = nullptr;
  for (size_t i = session_.requests.size(); before == nullptr && i-- > 0;)
    if (session_.requests[i].conversation == request.conversation) before = &session_.requests[i];
  if (before != nullptr) {
    if (request.start_s < before->start_s)
      table_.expected(columns_.t, "no less than in the row before it of its conversation");
    const double ended_s = before->start_s + before->service_s;
    request.think_s = table_.number_or_nothing(columns_.think_time, kSeconds)
                          .value_or(std::max(0.0, request.start_s - ended_s));
  }
  session_.requests.push_back(std::move(request));
}

void TreeReader::read_shared(TraceRequest& request) const {
  const auto rows = static_cast<int64_t>(session_.requests.size());
  const int64_t with = table_.integer(columns_.lcp_request, {-1, rows - 1});
  const int64_t most =
      with < 0 ? 0 : std::min(request.blocks, session_.requests[static_cast<size_t>(with)].blocks);
  request.shared_blocks =
      static_cast<uint32_t>(table_.integer(columns_.lcp_blocks, {with < 0 ? 0 : 1, most}));
  if (with >= 0) request.shared_with = static_cast<uint32_t>(with);
}

uint32_t TreeReader::conversation_of_row() {
  const auto fresh = static_cast<uint32_t>(session_.conversations.size());
  const auto [found, is_new] =
      numbers_.emplace(std::string(table_.text(columns_.conversation)), fresh);
  if (!is_new) return found->second;
  AgentSession::Conversation conversation;
  if (fresh != 0) {
    const auto parent = numbers_.find(std::string(table_.text(columns_.parent)));
    if (parent == numbers_.end() || parent->second == fresh)
      table_.expected(columns_.parent, "a conversation of an earlier row of the trace");
    conversation.parent = parent->second;
  }
  session_.conversations.push_back(conversation);
  return fresh;
}

// Parents come first: a sub-agent's own sub-agents find its requests where they belong.
void TreeReader::place_sub_agents() {
  auto& requests = session_.requests;
  for (uint32_t number = 0; number < session_.conversations.size(); ++number) {
    auto& conversation = session_.conversations[number];
    if (!conversation.parent) continue;
    const auto is_mine = [&](const TraceRequest& request) {
      return request.conversation == number;
    };
    const auto first = std::find_if(requests.begin(), requests.end(), is_mine);
    const auto last = std::find_if(requests.rbegin(), requests.rend(), is_mine);
    const double length_s = last->start_s + last->service_s;
    const auto is_parents = [&](const TraceRequest& request) {
      return request.conversation == *conversation.parent;
    };
    const auto next = std::find_if(first, requests.end(), is_parents);
    const double done_s = next == requests.end() ? kSeconds.high : next->start_s + kClockSlack_s;
    // The parent has a row before: conversation_of_row() saw to that. Where no answer leaves the
    // time, the latest one counts.
    std::optional<double> latest_s, fitting_s;
    for (auto asked = first; asked != requests.begin() && !fitting_s;) {
      if (!is_parents(*--asked)) continue;
      const double answered_s = asked->start_s + asked->service_s;
      if (!latest_s) latest_s = answered_s;
      if (answered_s + length_s <= done_s) fitting_s = answered_s;
    }
    conversation.start_s = fitting_s ? *fitting_s : latest_s.value_or(0);
    for (TraceRequest& request : requests)
      if (is_mine(request)) request.start_s += conversation.start_s;
  }
}

void TreeReader::finish_session(Trace& trace) {
  if (session_.requests.empty()) return;
  place_sub_agents();
  append_session(session_, trace);
  session_ = {};
  numbers_.clear();
}

}  // namespace

Trace read_agent_tree(const TraceFile& file, const TraceOptions& options) {
  Trace trace;
  trace.format = TraceFormat::kAgentTree;
  trace.block_tokens = options.block_tokens != 0 ? options.block_tokens : kAgentBlockTokens;
  trace.has_prefixes = true;
  trace.clock = TraceClock::kOwn;
  TreeReader(file, trace.block_tokens).read(trace);
  return trace;
}

}  // namespace net
