// Message handlers as spans of the process's trace (kernels/base/trace_events.hpp).
#pragma once

#include <utility>

#include "kernels/base/trace_events.hpp"

namespace actors {

// The same handler, as a span called `name`, a string literal "actor.message". Its parameter types
// stay what they are: CAF reads them.
template <class Handler, class Result, class... Args>
auto traced_call(const char* name, Handler handler, Result (Handler::*)(Args...) const) {
  return [name, handler = std::move(handler)](Args... args) -> Result {
    const kernels::TraceSpan span(name);
    return handler(static_cast<Args&&>(args)...);
  };
}

template <class Handler>
auto traced(const char* name, Handler handler) {
  return traced_call(name, std::move(handler), &Handler::operator());
}

}  // namespace actors
