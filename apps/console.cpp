// sluice-console: looks into a running server's memory, or into a saved file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "net/console.hpp"

int main(int argc, char** argv) {
  CLI::App app(
      "Shows a running server's prefix tree, state slots, memory and moves; \"help\" lists the "
      "commands. Without a command it reads them from the terminal.",
      "sluice-console");
  net::ConsoleOptions options;
  auto* const connect = app.add_option("--connect", options.target.connect,
                                       "PATH of an admin socket, or HOST:PORT of a server; "
                                       "default: the server on port 30000, else the only one of this user");
  app.add_option("--open", options.target.open, "A saved snapshot or a move log instead")
      ->excludes(connect);
  app.add_option("--api-key", options.target.api_key, "The server's key, for HOST:PORT")
      ->envname("SLUICE_API_KEY");
  app.add_flag("--json", options.json, "Answers as JSON, for scripts");
  app.prefix_command();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  options.words = app.remaining();
  try {
    return net::run_console(options);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "sluice-console: %s\n", failure.what());
    return 1;
  }
}
