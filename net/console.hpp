// The console itself: one command from the shell, lines with editing and history, or a live view.
#pragma once

#include <string>
#include <vector>

#include "net/console_client.hpp"

namespace net {

struct ConsoleOptions {
  ConsoleTarget target;
  bool json = false;               // answers as JSON, for scripts
  std::vector<std::string> words;  // one command; empty: lines from the terminal or stdin
};

// The exit code: 0 fine; 1 refused, nobody there, or violations found; 2 bad usage.
int run_console(ConsoleOptions options);

}  // namespace net
