// Reads recorded traffic of any format: files are known by what is in them, never by their names.
#pragma once

#include <string>
#include <vector>

#include "net/trace/trace.hpp"
#include "net/trace/trace_formats.hpp"

namespace net {

// Files of one format, as one trace; a directory stands for the raw kv-cache-tester sessions in it,
// by name. Several files go together where sessions have clocks of their own. Throws
// std::runtime_error that names the file, and the line where there is one.
Trace read_trace(const std::vector<std::string>& paths, const TraceOptions& options);

// "mooncake", "agent-json", "agent-tree", "messages", "azure", "record".
std::string_view format_name(TraceFormat format);

}  // namespace net
