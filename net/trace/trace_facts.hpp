// What `sluice-replay inspect` says of a trace.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>

#include "net/trace/distribution.hpp"
#include "net/trace/trace.hpp"

namespace net {

struct TraceFacts {
  uint64_t requests = 0, sessions = 0, conversations = 0;
  double span_s = 0;  // from the first request to the last answer; kOwn: of the longest session
  uint64_t timed_answers = 0;  // requests whose service_s is known
  Distribution input_tokens, output_tokens;
  Distribution context_tokens;          // input and output of a request together
  Distribution session_requests;        // by session
  Distribution session_context_tokens;  // the largest of each session
  // Of prompts in blocks of the trace; `ideal_hit` are those that an earlier prompt began with, as
  // an unbounded cache would have them; `with_answers`: an earlier prompt and its answer.
  uint64_t blocks = 0, ideal_hit_blocks = 0, ideal_hit_blocks_with_answers = 0;
  // Prompts that share no block with an earlier one; that begin with all whole blocks of one; that
  // part from it before its end.
  uint64_t cold = 0, extending = 0, diverging = 0;
  uint64_t branch_points = 0;  // blocks behind which prompts go on in different ways
};

TraceFacts facts_of(const Trace& trace);

boost::json::object facts_json(const Trace& trace, const TraceFacts& facts);
std::string facts_text(const Trace& trace, const TraceFacts& facts);

}  // namespace net
