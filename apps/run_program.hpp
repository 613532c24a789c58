// The end of a program made of subcommands: the chosen one runs while its arguments are read.
#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

namespace apps {

// The exit status: 2 for arguments that cannot be, 1 for what went wrong, told on stderr by `name`.
inline int run_program(CLI::App& app, const char* name, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << "\n";
    return 1;
  }
}

}  // namespace apps
