// Answers the console's commands from a source, as JSON: the server does so for whoever is
// connected, the console itself for a saved file.
#pragma once

#include <boost/json/object.hpp>

#include "net/console_source.hpp"

namespace net {

// `command` is what parse_command() makes. Errors name the field or the id and what is wrong.
kernels::Result<boost::json::object> console_answer(const boost::json::object& command,
                                                    ConsoleSource& source);

}  // namespace net
