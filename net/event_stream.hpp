// Frames server-sent events, in HTTP/1.1 chunks or bare (HTTP/1.0: the close ends the body).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace net {

// `data: <payload>` and a blank line for each, all in one chunk. A payload holds no line break
// (JSON escapes them).
void append_events(const std::vector<std::string>& payloads, bool chunked, std::string& wire);

// The chunk that ends the body; nothing when bare.
void append_stream_end(bool chunked, std::string& wire);

}  // namespace net
