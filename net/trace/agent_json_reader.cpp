// A raw kv-cache-tester session: one JSON object with requests, among which a sub-agent is an
// entry with requests of its own. An entry's t is when the sub-agent was done (its parent's answer
// ends duration_ms before it); inside, t counts from the sub-agent's start.
#include <algorithm>
#include <boost/json/parser.hpp>

#include "net/trace/agent_session.hpp"
#include "net/trace/json_place.hpp"
#include "net/trace/prefix_trie.hpp"
#include "net/trace/trace_formats.hpp"

namespace net {
namespace json = boost::json;

namespace {

constexpr int64_t kHashIdMax = int64_t{1} << 53;

class SessionReader {
 public:
  AgentSession read(Fields fields);
  uint32_t block_tokens() const { return block_tokens_; }

 private:
  using Conversation = AgentSession::Conversation;

  void read_conversation(Fields& owner, Conversation conversation);
  void read_request(Fields& fields, uint32_t conversation, double conversation_start_s);
  void read_sub_agent(Fields& fields, uint32_t parent, double parent_start_s);
  void share_prompt(Fields& fields, TraceRequest& request);

  AgentSession session_;
  std::vector<std::optional<uint32_t>> latest_;  // request of each conversation
  PrefixTrie prompts_;
  uint32_t block_tokens_ = kAgentBlockTokens;
};

double required_seconds(Fields& fields, std::string_view name) {
  if (fields.find(name) == nullptr) fields.fail(name, "is required");
  return fields.number(name, kSeconds).value_or(0);
}

uint32_t required_tokens(Fields& fields, std::string_view name) {
  if (fields.find(name) == nullptr) fields.fail(name, "is required");
  return static_cast<uint32_t>(fields.integer(name, kTokenCounts).value_or(0));
}

AgentSession SessionReader::read(Fields fields) {
  session_.name = fields.string("id").value_or("");
  if (session_.name.empty()) fields.fail("id", "is required: the session's name");
  // Ids that mean the same in every file are not what these files hold.
  fields.word("hash_id_scope", {"local"});
  block_tokens_ =
      static_cast<uint32_t>(fields.integer("block_size", {1, 1 << 20}).value_or(kAgentBlockTokens));
  read_conversation(fields, {});
  return std::move(session_);
}

void SessionReader::read_conversation(Fields& owner, Conversation conversation) {
  const auto number = static_cast<uint32_t>(session_.conversations.size());
  session_.conversations.push_back(conversation);
  latest_.emplace_back();
  const json::array* requests = owner.array("requests");
  if (requests == nullptr) return owner.fail("requests", "is required: an array of requests");
  for (size_t i = 0; i < requests->size() && owner.ok(); ++i) {
    const std::string name = element("requests", i);
    const json::object* object = (*requests)[i].if_object();
    if (object == nullptr) return owner.expected(name, "an object", (*requests)[i]);
    Fields fields = owner.inside(name, *object);
    if (fields.find("type") == nullptr) fields.fail("type", "is required");
    const auto type = fields.word("type", {"n", "s", "subagent"});
    if (type == "subagent") {
      read_sub_agent(fields, number, conversation.start_s);
    } else if (type) {
      read_request(fields, number, conversation.start_s);
    }
  }
}

void SessionReader::read_sub_agent(Fields& fields, uint32_t parent, double parent_start_s) {
  const double done_s = required_seconds(fields, "t");
  const double length_s = fields.number("duration_ms", {0, kSeconds.high * 1e3}).value_or(0) / 1e3;
  read_conversation(fields, {parent, parent_start_s + std::max(0.0, done_s - length_s)});
}

void SessionReader::read_request(Fields& fields, uint32_t conversation,
                                 double conversation_start_s) {
  TraceRequest request;
  request.conversation = conversation;
  request.start_s = conversation_start_s + required_seconds(fields, "t");
  request.input_tokens = required_tokens(fields, "in");
  request.output_tokens = required_tokens(fields, "out");
  request.service_s = fields.number("api_time", kSeconds).value_or(0);
  const auto think_s = fields.number("think_time", kSeconds);
  if (!fields.ok()) return;
  if (const auto before = latest_[conversation]) {
    const TraceRequest& earlier = session_.requests[*before];
    if (request.start_s < earlier.start_s)
      return fields.expected("t", "no less than that of the request before it", *fields.find("t"));
    const double ended_s = earlier.start_s + earlier.service_s;
    request.think_s = think_s.value_or(std::max(0.0, request.start_s - ended_s));
  }
  share_prompt(fields, request);
  latest_[conversation] = static_cast<uint32_t>(session_.requests.size());
  session_.requests.push_back(std::move(request));
}

void SessionReader::share_prompt(Fields& fields, TraceRequest& request) {
  const json::array* ids = fields.array("hash_ids");
  if (ids == nullptr) return fields.fail("hash_ids", "is required: one id per block");
  std::vector<uint64_t> blocks;
  blocks.reserve(ids->size());
  for (size_t i = 0; i < ids->size(); ++i) {
    const auto id = exact_integer((*ids)[i]);
    if (!id || *id < 0 || *id > kHashIdMax)
      return fields.expected(element("hash_ids", i), "an integer between 0 and 2^53", (*ids)[i]);
    blocks.push_back(static_cast<uint64_t>(*id));
  }
  const std::string problem =
      block_count_problem(blocks.size(), request.input_tokens, block_tokens_);
  if (!problem.empty()) return fields.fail("hash_ids", problem);
  const SharedPrefix shared =
      prompts_.insert(blocks, static_cast<uint32_t>(session_.requests.size()));
  request.blocks = static_cast<uint32_t>(blocks.size());
  request.shared_blocks = shared.blocks;
  request.shared_with = shared.with;
}

// The line where the JSON text stops to be JSON.
size_t broken_line(const TraceFile& file) {
  json::parser parser;
  json::error_code code;
  return line_of_byte(file, parser.write_some(file.bytes.data(), file.bytes.size(), code));
}

}  // namespace

Trace read_agent_json(const std::vector<TraceFile>& files) {
  Trace trace;
  trace.format = TraceFormat::kAgentJson;
  trace.has_prefixes = true;
  trace.clock = TraceClock::kOwn;
  for (const TraceFile& file : files) {
    JsonBody body(file.bytes, "the file");
    if (body.error()) bad_row(file, broken_line(file), body.error()->message);
    SessionReader reader;
    const AgentSession session = reader.read(body.fields());
    if (body.error())
      bad_row(file, line_of_byte(file, place_in_json(file.bytes, body.error()->param)),
              body.error()->message);
    if (trace.block_tokens != 0 && trace.block_tokens != reader.block_tokens())
      bad_row(file, 1,
              "block_size is " + std::to_string(reader.block_tokens()) + "; in " +
                  files.front().path + " it is " + std::to_string(trace.block_tokens) +
                  ", and a trace has one");
    trace.block_tokens = reader.block_tokens();
    append_session(session, trace);
  }
  return trace;
}

}  // namespace net
