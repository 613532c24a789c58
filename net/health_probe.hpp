// /health_generate: one token through the whole engine.
#pragma once

#include <string_view>

#include "net/openai_api.hpp"

namespace net {

kernels::Result<ParsedRequest> make_health_probe(std::string_view body,
                                                 const actors::Service& service);

}  // namespace net
