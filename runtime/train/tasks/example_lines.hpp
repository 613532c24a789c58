// Examples as JSON lines that any client of the HTTP API can run and check:
// {"source", "request": a body of /v1/chat/completions, "answer", "contains"}.
#pragma once

#include <iosfwd>

#include "runtime/train/tasks/example.hpp"

namespace runtime {

void write_example_line(const Example& example, std::ostream& out);

}  // namespace runtime
