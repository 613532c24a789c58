// Records as a trace: who waited for whom is found in what conversations begin with.
#include <algorithm>
#include <map>

#include "net/trace/prefix_trie.hpp"
#include "net/trace/request_record.hpp"

namespace net {
namespace {

class RecordReader {
 public:
  explicit RecordReader(Trace& trace) : trace_(trace) {}
  void add(RequestRecord record);

 private:
  // A conversation as far as one of its requests asked: its client's session, its messages.
  struct Asked {
    std::string session;
    uint64_t messages = 0;
    auto operator<=>(const Asked&) const = default;
  };
  struct Place {
    uint32_t session = 0, conversation = 0;
    std::optional<uint32_t> after;
  };
  using Requests = std::vector<uint32_t>;

  Place place_of(const RequestRecord& record, const RecordedPrompt& prompt);
  Place behind(uint32_t request);
  std::optional<uint32_t> earlier_turn(const RequestRecord& record, const RecordedPrompt& prompt);
  std::optional<uint32_t> latest_answered(const Requests& requests, double time_s) const;
  void add_choice(const RequestRecord& record, const RecordedChoice& choice, const Place& place);
  double end_of(uint32_t request) const {
    return trace_.requests[request].start_s + trace_.requests[request].service_s;
  }

  Trace& trace_;
  PrefixTrie prompts_, answered_;
  std::map<Asked, Requests> turns_;
  std::map<std::string, Requests> named_;  // by the sessions that clients name
  std::vector<uint32_t> conversations_;    // how many each session has
  std::vector<bool> continued_;            // by request
};

std::optional<uint32_t> RecordReader::latest_answered(const Requests& requests,
                                                      double time_s) const {
  const auto found = std::find_if(requests.rbegin(), requests.rend(),
                                  [&](uint32_t request) { return end_of(request) <= time_s; });
  if (found == requests.rend()) return std::nullopt;
  return *found;
}

// The latest request that had its answer and whose conversation the prompt goes on from: the
// longest such conversation.
std::optional<uint32_t> RecordReader::earlier_turn(const RequestRecord& record,
                                                   const RecordedPrompt& prompt) {
  for (size_t length = prompt.messages.size(); length-- > 1;) {
    const auto found = turns_.find({record.session, prompt.messages[length - 1]});
    if (found == turns_.end()) continue;
    if (const auto turn = latest_answered(found->second, record.arrival_s)) return turn;
  }
  return std::nullopt;
}

// The second way to go on from a request is a conversation of its own.
RecordReader::Place RecordReader::behind(uint32_t request) {
  const TraceRequest& before = trace_.requests[request];
  Place place{before.session, before.conversation, request};
  if (continued_[request]) place.conversation = conversations_[place.session]++;
  continued_[request] = true;
  return place;
}

RecordReader::Place RecordReader::place_of(const RequestRecord& record,
                                           const RecordedPrompt& prompt) {
  if (const auto turn = earlier_turn(record, prompt)) return behind(*turn);
  const auto named = record.session.empty() ? named_.end() : named_.find(record.session);
  if (named != named_.end()) {
    const auto latest = latest_answered(named->second, record.arrival_s);
    // Plain prompts of a session follow each other; a new conversation is a sub-agent's.
    if (latest && prompt.messages.empty()) return behind(*latest);
    const uint32_t session = trace_.requests[named->second.front()].session;
    return {session, conversations_[session]++, latest};
  }
  const auto session = static_cast<uint32_t>(trace_.sessions.size());
  trace_.sessions.push_back(
      {record.session.empty() ? record.id : record.session, record.arrival_s, 0});
  conversations_.push_back(1);
  return {session, 0, {}};
}

void RecordReader::add(RequestRecord record) {
  const auto first = static_cast<uint32_t>(trace_.requests.size());
  std::vector<std::optional<uint32_t>> texts(record.prompts.size());
  std::optional<Place> place;
  for (const RecordedChoice& choice : record.choices) {
    RecordedPrompt& prompt = record.prompts[choice.prompt];
    if (!place)
      place = place_of(record, prompt);
    else
      place->conversation = conversations_[place->session]++;  // choices run side by side
    if (prompt.content) {
      texts[choice.prompt] = static_cast<uint32_t>(trace_.texts.size());
      trace_.texts.push_back({*std::move(prompt.content)});
      prompt.content.reset();
    }
    add_choice(record, choice, *place);
    trace_.requests.back().text = texts[choice.prompt];
  }
  if (record.choices.empty()) return;
  if (const auto& asked = record.prompts[record.choices.front().prompt].messages; !asked.empty())
    turns_[{record.session, asked.back()}].push_back(first);
  if (!record.session.empty()) named_[record.session].push_back(first);
}

void RecordReader::add_choice(const RequestRecord& record, const RecordedChoice& choice,
                              const Place& place) {
  const auto index = static_cast<uint32_t>(trace_.requests.size());
  const RecordedPrompt& prompt = record.prompts[choice.prompt];
  TraceRequest request;
  request.session = place.session;
  request.conversation = place.conversation;
  request.after = place.after;
  request.start_s = record.arrival_s;
  request.service_s = record.end_s - record.arrival_s;
  if (place.after) request.think_s = std::max(0.0, request.start_s - end_of(*place.after));
  request.input_tokens = prompt.tokens;
  request.output_tokens = choice.tokens;
  request.messages = static_cast<uint32_t>(prompt.messages.size());
  request.answer = choice.ids;
  const SharedPrefix shared = prompts_.insert(prompt.blocks, index);
  request.blocks = static_cast<uint32_t>(prompt.blocks.size());
  request.shared_blocks = shared.blocks;
  request.shared_with = shared.with;
  request.shared_blocks_with_answers = answered_.find(prompt.blocks).blocks;
  std::vector<uint64_t> both = prompt.blocks;
  both.insert(both.end(), choice.blocks.begin(), choice.blocks.end());
  answered_.insert(both, index);
  ++trace_.sessions[place.session].requests;
  continued_.push_back(false);
  trace_.requests.push_back(std::move(request));
}

// What a record says of itself must fit the header: block counts are a reader's to rely on.
std::string block_problem(const RequestRecord& record, uint32_t block_tokens) {
  for (size_t i = 0; i < record.prompts.size(); ++i) {
    const RecordedPrompt& prompt = record.prompts[i];
    const size_t whole = prompt.tokens / block_tokens;
    if (prompt.blocks.size() != whole)
      return element("prompts", i) + ".blocks holds " + std::to_string(prompt.blocks.size()) +
             " hashes; a prompt of " + std::to_string(prompt.tokens) + " tokens has " +
             std::to_string(whole) + " whole blocks of " + std::to_string(block_tokens);
  }
  return {};
}

}  // namespace

Trace read_record(const TraceFile& file) {
  Trace trace;
  trace.format = TraceFormat::kRecord;
  trace.has_prefixes = true;
  std::optional<RecordHeader> header;
  std::vector<RequestRecord> records;
  for_each_json_row(file, [&](Fields fields, size_t line) {
    if (!header) {
      header = read_record_header(fields);
      return;
    }
    RequestRecord record = read_request_record(fields);
    if (!fields.ok()) return;
    if (const auto problem = block_problem(record, header->block_tokens); !problem.empty())
      bad_row(file, line, problem);
    records.push_back(std::move(record));
  });
  trace.block_tokens = header ? header->block_tokens : 0;
  std::stable_sort(
      records.begin(), records.end(),
      [](const RequestRecord& a, const RequestRecord& b) { return a.arrival_s < b.arrival_s; });
  RecordReader reader(trace);
  const double begin_s = records.empty() ? 0 : records.front().arrival_s;
  for (RequestRecord& record : records) {
    record.arrival_s -= begin_s;
    record.end_s -= begin_s;
    reader.add(std::move(record));
  }
  return trace;
}

}  // namespace net
