// What a route allows a generation: how long it may take, and how its client is refused.
#pragma once

#include <functional>

#include "net/client_socket.hpp"
#include "net/response.hpp"
#include "net/server_context.hpp"

namespace net {

struct GenerationTerms {
  TimePoint deadline = TimePoint::max();                   // then it fails with kTimeout
  std::function<Response(const kernels::Error&)> refusal;  // for a failure before the answer began
};

// As long as it takes, and each error with its own status.
inline GenerationTerms usual_terms(ServerContext& context) {
  return {TimePoint::max(), [&limits = context.config.limits](const kernels::Error& error) {
            return error_response(error, limits);
          }};
}

}  // namespace net
