// Which handler answers a path, and with which methods.
#pragma once

#include <string>
#include <string_view>

#include "net/generation_terms.hpp"
#include "net/openai_api.hpp"
#include "net/response.hpp"

namespace net {

struct RequestView {
  std::string_view rest;  // what follows the route's path, which ends in '/'
  std::string_view body;
  const runtime::KeepGoing& keep_going;  // for slow routes: is anyone still waiting?
};

// Answers at once (or, if it may take long, on the helper thread).
using PlainHandler = Response (*)(ServerContext& context, const RequestView& request);
// Turns a body into a generation, whose events become the answer.
using GenerationParser = kernels::Result<ParsedRequest> (*)(std::string_view body,
                                                            const actors::Service& service);

struct Route {
  std::string_view path;  // one ending in '/' matches any path that continues it
  bool get = false, post = false;
  PlainHandler plain = nullptr;  // exactly one of these two
  GenerationParser generation = nullptr;
  bool slow = false;         // works in proportion to the body: on the helper thread
  bool needs_model = false;  // 503 until the model is loaded
  bool open = false;         // needs no API key
  GenerationTerms (*terms)(ServerContext& context) = usual_terms;  // of a generation that begins

  std::string_view rest_of(std::string_view request_path) const;  // of one that matches
  bool allows(std::string_view method) const;
  std::string allowed_methods() const;  // for the Allow header
};

// nullptr: unknown path.
const Route* find_route(std::string_view path);

}  // namespace net
