// The answers that take more than a few lines each; see console_answer.hpp. A field that is wrong
// is the answer's error.
#pragma once

#include <boost/json/object.hpp>
#include <limits>
#include <optional>
#include <string_view>

#include "net/console_source.hpp"
#include "net/json_fields.hpp"

namespace net {

inline constexpr IntegerRange kNodes{0, std::numeric_limits<uint32_t>::max() - 1};

// A sequence that a field names; none: there is no such field, or it is wrong.
std::optional<memory::SequenceId> sequence_of(Fields& fields, std::string_view name);

kernels::Result<boost::json::object> answer_tree(Fields& fields, ConsoleSource& source);
kernels::Result<boost::json::object> answer_node(Fields& fields, ConsoleSource& source);
kernels::Result<boost::json::object> answer_slots(Fields& fields, ConsoleSource& source);
kernels::Result<boost::json::object> answer_pool(Fields& fields, ConsoleSource& source);
kernels::Result<boost::json::object> answer_why(Fields& fields, ConsoleSource& source);

}  // namespace net
