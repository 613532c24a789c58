// What a scenario says of a published figure: its value, what would be accepted, and where from.
#pragma once

#include "runtime/sim/device_figure.hpp"
#include "runtime/toml_fields.hpp"

namespace runtime {

// name; published (a number) or said (a text); within (a part of `published`), at-least, at-most;
// provenance = "held out" | "calibrated" | "count"; source. Everything but the prediction.
DeviceFigure read_published(TomlFields& in);

}  // namespace runtime
