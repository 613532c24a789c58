// How actors are spawned: one that computes for long, or must not wait behind others, gets its own
// thread, except where a test runs everything on one.
#pragma once

#include <caf/error.hpp>
#include <caf/sec.hpp>
#include <caf/spawn_options.hpp>
#include <exception>
#include <string>
#include <utility>

namespace actors {

struct SpawnPolicy {
  bool own_threads = true;  // false: nothing is detached (CAF's testing scheduler)
};

// Monitored by the actor that spawns it.
template <class Self, class Function, class... Args>
auto spawn_with_thread(Self* self, SpawnPolicy policy, Function function, Args&&... args) {
  if (policy.own_threads) {
    return self->template spawn<caf::detached + caf::monitored>(function,
                                                                std::forward<Args>(args)...);
  }
  return self->template spawn<caf::monitored>(function, std::forward<Args>(args)...);
}

inline caf::error failure(const std::string& reason) {
  return caf::make_error(caf::sec::runtime_error, reason);
}

inline std::string what(const std::exception_ptr& pointer) {
  try {
    std::rethrow_exception(pointer);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an unknown exception";
  }
}

// An exception that escapes a handler ends its actor, as always, but the monitor learns what it
// said.
template <class Self>
void name_exceptions(Self* self) {
  self->set_exception_handler([](std::exception_ptr& pointer) { return failure(what(pointer)); });
}

}  // namespace actors
