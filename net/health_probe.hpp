// /health_generate: one token through the whole engine. A busy engine is a healthy one.
#pragma once

#include <string_view>

#include "net/generation_terms.hpp"
#include "net/openai_api.hpp"

namespace net {

inline constexpr std::string_view kHealthProbeId = "health-probe";

kernels::Result<ParsedRequest> make_health_probe(std::string_view body,
                                                 const actors::Service& service);

// Bounded in time. A probe that got no token is refused with 503, unless the engine is full or has
// made steps for others meanwhile.
GenerationTerms probe_terms(ServerContext& context);

}  // namespace net
