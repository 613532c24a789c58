// Where a field stands in JSON text: a file of one object has its mistakes reported by line too.
#pragma once

#include <cstddef>
#include <string_view>

namespace net {

// The byte where the value named by `path` ("requests[3].hash_ids[7]") begins, or that of the
// innermost value around it that is there. `json` is valid.
size_t place_in_json(std::string_view json, std::string_view path);

}  // namespace net
