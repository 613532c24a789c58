// Runs programs, some at a time, and waits for all of them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace net {

struct ProcessCommand {
  std::vector<std::string> words;  // the program's path first
  std::string log;                 // file that gets what it writes to stderr; stdout is dropped
};

// Calls ended(index, whether it exited with 0) as each ends. None of them outlives the caller, even
// when that is killed. Throws std::runtime_error when no process can be made.
void run_processes(const std::vector<ProcessCommand>& commands, size_t at_once,
                   const std::function<void(size_t, bool)>& ended);

}  // namespace net
