// A command of the shell, run to its end.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "kernels/base/verify.hpp"

namespace support {

struct CommandOutput {
  int status = -1;   // the exit status; -1: a signal ended it
  std::string text;  // what it wrote to stdout
};

inline CommandOutput run_command(const std::string& command) {
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  VERIFY(pipe != nullptr);
  CommandOutput output;
  char bytes[4096];
  for (size_t count; (count = std::fread(bytes, 1, sizeof bytes, pipe)) > 0;)
    output.text.append(bytes, count);
  const int status = ::pclose(pipe);
  output.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

}  // namespace support
