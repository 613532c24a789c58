// The console's commands: what each takes, and how a line of words becomes the JSON object that a
// server or a saved file answers.
#pragma once

#include <boost/json/object.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"

namespace net {

struct CommandOption {
  std::string_view name;  // "--name VALUE" in a line, "name" in JSON
  bool number = false;    // else a word
  std::string_view help;
};

struct CommandSpec {
  std::string_view name;
  std::string_view operand;     // what follows it: its JSON name; empty: nothing
  bool operand_number = false;
  std::vector<CommandOption> options;
  std::string_view help;        // one line
  bool local = false;           // the console's own: never sent
};

std::span<const CommandSpec> console_commands();
const CommandSpec* find_command(std::string_view name);  // nullptr: unknown

// Splits at spaces; "double quotes" keep spaces together.
std::vector<std::string> split_words(std::string_view line);

// {"cmd": ..., operand and options by name}. Errors name the word.
kernels::Result<boost::json::object> parse_command(std::span<const std::string> words);

std::string command_help();                           // of all
std::string command_help(const CommandSpec& command);  // of one

}  // namespace net
