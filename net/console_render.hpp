// The console's answers as text for people. Plain characters, readable without colour.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

namespace net {

// `command`: which answer `result` is.
std::string render(std::string_view command, const boost::json::object& result);

// One arena as a bar of `width` characters; the legend is kPoolLegend.
std::string pool_bar(const boost::json::object& pool, size_t width);
inline constexpr std::string_view kPoolLegend =
    "W working  S snapshot  C checkpoint  P pages  o hole  ! pinned  . free";

std::string bytes_text(double bytes);  // "12.5 MiB"

}  // namespace net
