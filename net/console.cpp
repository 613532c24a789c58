#include "net/console.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>

#include <editline/readline.h>

#include "net/console_command.hpp"
#include "net/console_session.hpp"

namespace net {
namespace {

constexpr int kHistoryMax = 1000;  // lines

// Only names of commands, and of options behind them, are completed.
std::vector<std::string> candidates(std::string_view before, std::string_view word) {
  std::vector<std::string> found;
  const std::vector<std::string> words = split_words(before);
  if (words.empty()) {
    for (const CommandSpec& spec : console_commands()) found.emplace_back(spec.name);
  } else if (words[0] == "help") {
    for (const CommandSpec& spec : console_commands()) found.emplace_back(spec.name);
  } else if (const CommandSpec* spec = find_command(words[0])) {
    for (const CommandOption& option : spec->options)
      found.push_back("--" + std::string(option.name));
  }
  std::erase_if(found, [&](const std::string& name) { return name.rfind(word, 0) != 0; });
  return found;
}

// libedit asks one candidate after the other, and frees what it is given.
std::vector<std::string> offered;
size_t offered_next = 0;

char* offer(const char*, int) {
  if (offered_next == offered.size()) return nullptr;
  return ::strdup(offered[offered_next++].c_str());
}

char** complete(const char* word, int start, int) {
  rl_attempted_completion_over = 1;  // no file names
  const auto before = std::string_view(rl_line_buffer).substr(0, static_cast<size_t>(start));
  offered = candidates(before, word);
  offered_next = 0;
  return offered.empty() ? nullptr : rl_completion_matches(word, offer);
}

std::string history_path() {
  const char* const home = std::getenv("HOME");
  return home == nullptr ? "" : std::string(home) + "/.sluice_history";
}

// What a user types; the last line's verdict is the exit code.
int run_lines(ConsoleSession& session) {
  const bool terminal = ::isatty(STDIN_FILENO) != 0;
  int code = 0;
  if (!terminal) {
    for (std::string line; !session.over() && std::getline(std::cin, line);) {
      const auto words = split_words(line);
      if (!words.empty()) code = session.run(words);
    }
    return code;
  }
  std::printf("%s; \"help\" lists the commands, Tab completes, Ctrl-D leaves\n",
              session.client().name().c_str());
  rl_readline_name = "sluice-console";
  using_history();
  stifle_history(kHistoryMax);
  rl_attempted_completion_function = complete;
  const std::string path = history_path();
  if (!path.empty()) ::read_history(path.c_str());
  while (!session.over()) {
    char* const typed = ::readline("sluice> ");
    if (typed == nullptr) {  // Ctrl-D
      std::printf("\n");
      break;
    }
    const std::string line(typed);
    std::free(typed);
    const auto words = split_words(line);
    if (words.empty()) continue;
    add_history(line.c_str());
    code = session.run(words);
  }
  if (!path.empty()) ::write_history(path.c_str());
  return code;
}

}  // namespace

int run_console(ConsoleOptions options) {
  if (std::erase(options.words, "--json") > 0) options.json = true;  // wherever it stands
  if (!options.words.empty()) {
    // Wrong words are wrong with or without a server, and help needs none.
    const auto command = parse_command(options.words);
    if (!command) return complain(command.error(), 2, options.json);
    if (options.words.front() == "help") return show_help(*command, options.json);
  }
  std::unique_ptr<ConsoleClient> client;
  try {
    client = connect_console(options.target);
  } catch (const std::exception& failure) {
    return complain(kernels::invalid(failure.what()), 1, options.json);
  }
  ConsoleSession session(*client, options.json);
  return options.words.empty() ? run_lines(session) : session.run(options.words);
}

}  // namespace net
