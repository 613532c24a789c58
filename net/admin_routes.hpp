// The endpoints that are answered without a generation. Each is one function from a request to its
// answer.
#pragma once

#include "net/router.hpp"

namespace net {

Response models(ServerContext& context, const RequestView& request);
Response model(ServerContext& context, const RequestView& request);
Response tokenize(ServerContext& context, const RequestView& request);
Response detokenize(ServerContext& context, const RequestView& request);
Response health(ServerContext& context, const RequestView& request);
Response metrics(ServerContext& context, const RequestView& request);
Response server_info(ServerContext& context, const RequestView& request);
Response model_info(ServerContext& context, const RequestView& request);
Response abort_request(ServerContext& context,
                       const RequestView& request);  // {"rid": text} or {"abort_all": true}
Response admin(ServerContext& context,
               const RequestView& request);  // a command of admin_protocol.hpp
Response flush_cache(ServerContext& context, const RequestView& request);

}  // namespace net
