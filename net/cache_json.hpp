// What the cache and the move log tell, as JSON and back: the console's wire format, and that of
// the snapshots it saves.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/result.hpp"
#include "memory/cache_report.hpp"
#include "memory/move_log.hpp"

namespace net {

// "3.1": choice 1 of request 3.
std::string sequence_name(memory::SequenceId sequence);
// The same name, or the bare number that holds both.
std::optional<memory::SequenceId> parse_sequence(std::string_view name);

boost::json::object to_json(const memory::MoveRecord& record);
boost::json::object to_json(const memory::MoveGeometry& geometry);
boost::json::object to_json(const memory::CacheReport& report);

// Of JSON that to_json() made; an error names the field that is missing or of another type.
kernels::Result<memory::CacheReport> report_from_json(const boost::json::object& json);
kernels::Result<memory::MoveGeometry> geometry_from_json(const boost::json::object& json);
kernels::Result<memory::MoveRecord> move_from_json(const boost::json::object& json);

}  // namespace net
