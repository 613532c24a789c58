#include "net/console_command.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace net {
namespace {

namespace json = boost::json;

const CommandOption kSequence{"sequence", false, "REQUEST.CHOICE, or the number that holds both"};

const std::array kCommands = {
    CommandSpec{"tree",
                "",
                false,
                {{"depth", true, "levels below the roots"},
                 {"prefix", false, "paths whose text begins so"},
                 {"contains", false, "spans whose text holds this"},
                 {"sequence", false, "what a running sequence holds or one planted"}},
                "the prefix tree: spans, checkpoints, locks, pins, hits, sizes",
                false},
    CommandSpec{"node", "node", true, {}, "one node of the tree, with all of its span", false},
    CommandSpec{"slots", "", false, {}, "every state slot and its owner", false},
    CommandSpec{"pool", "", false, {}, "the arena, drawn to scale", false},
    CommandSpec{"why",
                "request",
                false,
                {},
                "why a request hit or missed: its id, or a sequence as REQUEST.CHOICE",
                false},
    CommandSpec{"requests", "", false, {}, "the latest requests by the id of their answer", false},
    CommandSpec{"moves",
                "",
                false,
                {{"last", true, "at most so many, the newest (default 20)"},
                 {"from", true, "from this record on instead"},
                 {"kind", false, "bind, move, clear, restore, write, snapshot, donate, free, ..."},
                 {"block", false, "state or page"},
                 kSequence,
                 {"node", true, "by their node"},
                 {"index", true, "of one virtual slot or page"}},
                "the move log",
                false},
    CommandSpec{"verify", "", false, {}, "replay the move log and check every rule", false},
    CommandSpec{"stats", "", false, {}, "counters: hits, misses, evictions, owners", false},
    CommandSpec{"evict", "node", true, {}, "evict a node's checkpoint by hand", false},
    CommandSpec{"pin", "node", true, {}, "keep a node's path and checkpoint from eviction", false},
    CommandSpec{"unpin", "node", true, {}, "undo one pin", false},
    CommandSpec{"snapshot", "file", false, {}, "save all of this to a file, for --open", true},
    CommandSpec{"watch", "", false, {{"every", true, "milliseconds (default 1000)"}},
                "a live view; q ends it", true},
    CommandSpec{"help", "command", false, {}, "this list, or one command in full", true},
    CommandSpec{"quit", "", false, {}, "leave", true},
};

kernels::Result<json::value> parse_value(const std::string& word, bool number,
                                         std::string_view name) {
  if (!number) return json::value(word);
  int64_t value = 0;
  const char* const end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, value);
  if (parsed.ec == std::errc() && parsed.ptr == end && value >= 0) return json::value(value);
  return kernels::invalid(std::string(name) + " must be a number, got \"" + word + "\"",
                          std::string(name));
}

}  // namespace

std::span<const CommandSpec> console_commands() { return kCommands; }

const CommandSpec* find_command(std::string_view name) {
  const auto found = std::find_if(kCommands.begin(), kCommands.end(),
                                  [&](const CommandSpec& spec) { return spec.name == name; });
  return found == kCommands.end() ? nullptr : &*found;
}

std::vector<std::string> split_words(std::string_view line) {
  std::vector<std::string> words;
  bool quoted = false, open = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
      if (!open) words.emplace_back();
      open = true;
    } else if (!quoted && (c == ' ' || c == '\t')) {
      open = false;
    } else {
      if (!open) words.emplace_back();
      open = true;
      words.back().push_back(c);
    }
  }
  return words;
}

kernels::Result<json::object> parse_command(std::span<const std::string> words) {
  if (words.empty()) return kernels::invalid("a command is missing; \"help\" lists them");
  const CommandSpec* const spec = find_command(words[0]);
  if (spec == nullptr)
    return kernels::invalid("there is no command \"" + words[0] + "\"; \"help\" lists them", "cmd");
  json::object command{{"cmd", words[0]}};
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.rfind("--", 0) != 0) {
      if (spec->operand.empty() || command.contains(spec->operand))
        return kernels::invalid(words[0] + " does not take \"" + word + "\"");
      auto value = parse_value(word, spec->operand_number, spec->operand);
      if (!value) return value.error();
      command[spec->operand] = std::move(*value);
      continue;
    }
    const std::string_view name = std::string_view(word).substr(2);
    const auto option = std::find_if(spec->options.begin(), spec->options.end(),
                                     [&](const CommandOption& one) { return one.name == name; });
    if (option == spec->options.end())
      return kernels::invalid(words[0] + " has no option " + word + "; try \"help " + words[0] +
                              "\"");
    if (++i == words.size()) return kernels::invalid(word + " needs a value");
    auto value = parse_value(words[i], option->number, name);
    if (!value) return value.error();
    command[name] = std::move(*value);
  }
  if (!spec->operand.empty() && !command.contains(spec->operand) && spec->name != "help")
    return kernels::invalid(words[0] + " needs a " + std::string(spec->operand),
                            std::string(spec->operand));
  return command;
}

std::string command_help(const CommandSpec& command) {
  std::string usage(command.name);
  if (!command.operand.empty()) {
    std::string operand(command.operand);
    for (char& c : operand) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    usage += " " + operand;
  }
  std::string text = usage + std::string(usage.size() < 16 ? 16 - usage.size() : 1, ' ') +
                     std::string(command.help) + "\n";
  for (const CommandOption& option : command.options) {
    const std::string flag = "  --" + std::string(option.name) + (option.number ? " N" : " WORD");
    text += flag + std::string(flag.size() < 20 ? 20 - flag.size() : 1, ' ') +
            std::string(option.help) + "\n";
  }
  return text;
}

std::string command_help() {
  std::string text;
  for (const CommandSpec& command : kCommands) {
    CommandSpec brief = command;
    brief.options.clear();
    text += command_help(brief);
  }
  return text + "\"help COMMAND\" lists its options.\n";
}

}  // namespace net
