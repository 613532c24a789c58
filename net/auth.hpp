// The optional API key.
#pragma once

#include <string_view>

namespace net {

// Takes a time that does not depend on where the texts differ.
bool equal_in_constant_time(std::string_view given, std::string_view expected);

// `authorization` is the header's value: "Bearer <key>". An empty expected key lets everyone in.
bool is_authorized(std::string_view authorization, std::string_view expected_key);

}  // namespace net
