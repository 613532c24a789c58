// /health_generate: one token through the whole engine. A busy engine is a healthy one.
#pragma once

#include <cstdint>
#include <string_view>

#include "net/openai_api.hpp"
#include "net/response.hpp"

namespace net {

kernels::Result<ParsedRequest> make_health_probe(std::string_view body,
                                                 const actors::Service& service);

// The answer to a probe that got no token. `steps`: how many the engine made meanwhile.
Response judge_probe(const kernels::Error& error, uint64_t steps, const HttpLimits& limits);

}  // namespace net
