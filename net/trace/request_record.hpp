// A finished request as `sluice-serve --record` keeps it: one JSON object a line, behind a header
// line that says how. Prompts are kept as they were sent, or only as hashes of their blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/trace/trace.hpp"
#include "net/trace/trace_file.hpp"
#include "runtime/request.hpp"

namespace net {

inline constexpr int64_t kRecordVersion = 1;

struct RecordHeader {
  std::string model;
  uint32_t block_tokens = 0;
  double started_unix_s = 0;  // what the records' times count from
  bool hashed = false;        // prompts and answers are kept as hashes alone
};

struct RecordedPrompt {
  uint32_t tokens = 0;
  std::vector<uint64_t> blocks;  // of its whole blocks: chained hashes, see block_hash.hpp
  // Of a conversation: chained hashes of what it begins with, one per message. A request whose
  // list begins with all of another's goes on from that one.
  std::vector<uint64_t> messages;
  std::optional<runtime::Prompt> content;  // absent: hashed
};

struct RecordedChoice {
  uint32_t prompt = 0;  // which of the request's
  uint32_t tokens = 0;
  std::string finish;            // stop, length, tool_calls; abort or error where it was cut off
  std::vector<uint64_t> blocks;  // of prompt and answer together, those past the prompt's own
  std::vector<runtime::TokenId> ids;  // empty: hashed
};

struct RequestRecord {
  // Since the recording began; first_token_s is 0 where there was no token.
  double arrival_s = 0, first_token_s = 0, end_s = 0;
  std::string endpoint;  // chat, completion
  std::string id;        // what the client knows it by
  std::string session;   // as the client names it; empty: it does not
  uint32_t cached_tokens = 0;
  std::vector<RecordedPrompt> prompts;
  std::vector<RecordedChoice> choices;
};

// Lines without their ends.
std::string record_line(const RecordHeader& header);
std::string record_line(const RequestRecord& record);

// Throw nothing; what is wrong is the Fields' error.
RecordHeader read_record_header(Fields fields);
RequestRecord read_request_record(Fields fields);

// Requests that go on from an earlier one's conversation make a session with it, as do those whose
// clients name one; an answer that was cut off counts as it is.
Trace read_record(const TraceFile& file);

}  // namespace net
