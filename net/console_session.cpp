#include "net/console_session.hpp"

#include <boost/json/serialize.hpp>
#include <cstdio>
#include <fstream>

#include "net/console_command.hpp"
#include "net/console_render.hpp"
#include "net/console_watch.hpp"

namespace net {
namespace {

namespace json = boost::json;

std::string text_of(const json::object& command, const char* name) {
  const json::value* found = command.if_contains(name);
  return found != nullptr && found->is_string() ? std::string(found->get_string().c_str()) : "";
}

}  // namespace

int complain(const kernels::Error& error, int code, bool json) {
  if (json) {
    const boost::json::object body{{"error", error.message}};
    std::printf("%s\n", boost::json::serialize(body).c_str());
  } else {
    std::fprintf(stderr, "sluice-console: %s\n", error.message.c_str());
  }
  return code;
}

int show_help(const json::object& command, bool json) {
  const std::string about = text_of(command, "command");
  if (about.empty()) {
    std::fputs(command_help().c_str(), stdout);
    return 0;
  }
  const CommandSpec* const spec = find_command(about);
  if (spec == nullptr)
    return complain(kernels::invalid("there is no command \"" + about + "\""), 2, json);
  std::fputs(command_help(*spec).c_str(), stdout);
  return 0;
}

// On this side: the server writes no files for others.
int ConsoleSession::save(const json::object& command) {
  const auto all = client_.ask({{"cmd", "snapshot"}});
  if (!all) return complain(all.error(), 1, json_);
  const std::string path = text_of(command, "file");
  std::ofstream out(path, std::ios::binary);
  out << json::serialize(*all) << "\n";
  out.close();
  if (!out) return complain(kernels::invalid(path + ": cannot be written"), 1, json_);
  if (!json_) std::printf("saved to %s; \"--open %s\" answers from it\n", path.c_str(), path.c_str());
  return 0;
}

int ConsoleSession::run(const std::vector<std::string>& words) {
  const auto command = parse_command(words);
  if (!command) return complain(command.error(), 2, json_);
  const std::string& name = words.front();
  if (name == "help") return show_help(*command, json_);
  if (name == "snapshot") return save(*command);
  if (name == "watch") return watch(client_, *command, json_);
  if (name == "quit") {
    over_ = true;
    return 0;
  }
  const auto answer = client_.ask(*command);
  if (!answer) return complain(answer.error(), 1, json_);
  const std::string text =
      json_ ? json::serialize(*answer) + "\n" : render(name, *answer);
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  const json::value* const violations = answer->if_contains("violations");
  return violations != nullptr && violations->to_number<uint64_t>() > 0 ? 1 : 0;
}

}  // namespace net
