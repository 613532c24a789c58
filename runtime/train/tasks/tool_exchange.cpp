#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "runtime/canonical_json.hpp"
#include "runtime/train/tasks/phrase.hpp"
#include "runtime/train/tasks/tool_box.hpp"

namespace runtime {

namespace json = boost::json;

namespace {

// A request in words and the call it stands for.
struct Request {
  std::string text;
  json::object arguments;
  Slots slots;
};

std::string json_text(const json::value& value) {
  return write_json(to_json_node(value), kSpacedJson);
}

// The named values in one of the ways in which users list them.
std::string spoken_list(TaskRandom& random,
                        const std::vector<std::pair<std::string, ToolValue>>& values) {
  static constexpr std::array<std::string_view, 5> kBetween{" ", ": ", "=", " should be ",
                                                            " set to "};
  const std::string_view between = random.pick(kBetween);
  const bool quoted = random.percent(40), plain_names = random.percent(30);
  std::vector<std::string> items;
  for (const auto& [name, value] : values) {
    std::string shown = name, text = value.spoken;
    if (plain_names) std::replace(shown.begin(), shown.end(), '_', ' ');
    if (value.value.is_array()) {
      text = json_text(value.value);  // commas part the items of the list and of the values
    } else if (value.value.is_string() && (quoted || text.find(' ') != text.npos)) {
      text = "\"" + text + "\"";
    }
    items.push_back(shown + std::string(between) + text);
  }
  return enumeration(items, random.percent(50) ? " and " : ", ");
}

Request made_up_request(TaskWords& words, const GeneratedTool& tool) {
  TaskRandom& random = words.random();
  Request out;
  std::vector<std::pair<std::string, ToolValue>> values;
  for (const ToolParameter& parameter : tool.parameters) {
    if (!parameter.required && random.percent(50)) continue;
    values.emplace_back(parameter.name, make_tool_value(words, parameter.kind));
    out.arguments[parameter.name] = values.back().second.value;
  }
  auto listed = values;
  if (random.percent(50)) random.shuffle(listed);
  out.slots = {{"tool", tool.name},
               {"verb", tool.verb},
               {"Verb", capitalised(tool.verb)},
               {"object", tool.object},
               {"list", spoken_list(random, listed)}};
  out.text =
      phrase(random,
             values.empty()
                 ? "[Please {verb} the {object}.|{Verb} the {object}.|Call {tool}.|Use {tool}, "
                   "please.|Can "
                   "you {verb} the {object}?|Run {tool} now.]"
                 : "[Please {verb} the {object} with {list}.|{Verb} the {object}, {list}.|Call "
                   "{tool} with "
                   "{list}.|Use {tool}: {list}|Can you {verb} the {object}? Use {list}.|I want to "
                   "{verb} the "
                   "{object}: {list}.|Run {tool} with {list}.|{Verb} the {object}. Take {list}.]",
             out.slots);
  return out;
}

Request make_request(TaskWords& words, const GeneratedTool& tool) {
  if (tool.pattern == nullptr) return made_up_request(words, tool);
  TaskRandom& random = words.random();
  Request out;
  for (const ToolParameter& parameter : tool.parameters) {
    const ToolValue value = make_tool_value(words, parameter.kind);
    out.arguments[parameter.name] = value.value;
    out.slots[parameter.name] = value.spoken;
  }
  out.text = capitalised(phrase(random, tool.pattern->requests, out.slots));
  return out;
}

std::string reasoning_for(TaskRandom& random, const GeneratedTool& tool, const Request& request) {
  std::string list;
  for (const auto& [key, value] : request.arguments) {
    list += (list.empty() ? "" : ", ") + std::string(key) + " = " + json_text(value);
  }
  const Slots slots{{"tool", tool.name}, {"list", list}};
  if (list.empty()) {
    return phrase(
        random, "[I call {tool}.|{tool} does this and needs nothing.|The tool is {tool}.]", slots);
  }
  return phrase(random,
                "[I call {tool} with {list}.|The tool {tool} fits: {list}.|{tool}, {list}.|"
                "This needs {tool}. {list}.|I use {tool}.]",
                slots);
}

ToolCall call_of(const GeneratedTool& tool, const Request& request, int number) {
  return {"call_" + std::to_string(number), tool.name, json_text(request.arguments)};
}

ChatMessage calling(TaskRandom& random, std::string reasoning, std::vector<ToolCall> calls) {
  ChatMessage message = assistant_message(
      std::move(reasoning),
      random.percent(10) ? phrase(random, "[I will do that.|One moment.|Let me look.]") : "");
  message.tool_calls = std::move(calls);
  return message;
}

// What the tool returns, and the answer that tells the user.
void append_result(TaskWords& words, const GeneratedTool& tool, const Request& request,
                   Exchange& exchange) {
  TaskRandom& random = words.random();
  const ToolCall& call = exchange.messages.back().tool_calls.front();
  ChatMessage result;
  result.role = "tool";
  result.name = call.name;
  result.tool_call_id = call.id;
  std::string reasoning, response;
  if (random.percent(8)) {
    const std::string error = phrase(
        random, "[not found|no connection|permission denied|not available today|{code} is unknown]",
        {{"code", words.code()}});
    result.content =
        random.percent(50) ? "Error: " + error : "{\"error\": " + json_quoted(error) + "}";
    reasoning = "The tool reports an error: " + error + ".";
    response = phrase(random,
                      "[That did not work: {e}.|I am sorry, the tool failed: {e}.|The tool "
                      "says: {e}.]",
                      {{"e", error}});
    exchange.expected = {error, {}};
  } else {
    Slots slots = request.slots;
    json::object facts;
    const std::vector<ToolParameter> named =
        tool.pattern != nullptr
            ? parse_parameters(tool.pattern->facts)
            : std::vector<ToolParameter>{
                  {words.one(WordList::kFields), std::string(some_tool_value_kind(random)), {}}};
    for (const ToolParameter& fact : named) {
      const ToolValue value = make_tool_value(words, fact.kind);
      facts[fact.name] = value.value;
      slots[fact.name] = value.spoken;
    }
    const std::string& first = named.front().name;
    const Slots one{{"name", first}, {"value", slots[first]}};
    response = tool.pattern != nullptr
                   ? phrase(random, tool.pattern->answer, slots)
                   : phrase(random,
                            "[Done. The {name} is {value}.|The {name} is {value}.|It "
                            "worked: {name} {value}.|The tool gives {name} {value}.]",
                            one);
    exchange.expected = {};
    std::string seen;
    for (const ToolParameter& fact : named) {
      seen += (seen.empty() ? "" : ", ") + fact.name + " is " + slots[fact.name];
      if (exchange.expected.contains.empty() && response.find(slots[fact.name]) != response.npos)
        exchange.expected.contains = slots[fact.name];
    }
    result.content = json_text(facts);
    reasoning = phrase(random, "[The tool says: |The result: |]") + capitalised(seen) + ".";
  }
  exchange.messages.push_back(std::move(result));
  exchange.messages.push_back(assistant_message(std::move(reasoning), capitalised(response)));
}

// A request for a tool that was not declared.
Exchange unmet(TaskWords& words, const std::vector<GeneratedTool>& tools) {
  TaskRandom& random = words.random();
  for (;;) {
    const GeneratedTool other = make_tool_box(words, 1).front();
    const bool is_declared = std::any_of(tools.begin(), tools.end(), [&](const auto& tool) {
      return (other.pattern != nullptr && tool.pattern == other.pattern) ||
             tool.name == other.name || (!other.object.empty() && tool.object == other.object);
    });
    if (is_declared) continue;
    return question(make_request(words, other).text,
                    {phrase(random,
                            "[None of my tools does this.|No tool fits.|I have no tool for "
                            "that.]"),
                     phrase(random,
                            "[I have no tool for that.|Sorry, I have no tool for this.|I "
                            "cannot do that: I have no tool for it.]"),
                     "no tool"});
  }
}

}  // namespace

Exchange tool_exchange(TaskWords& words, const std::vector<GeneratedTool>& tools, bool is_last,
                       int number) {
  TaskRandom& random = words.random();
  const int form = random.between(0, 99);
  if (form < 8) return unmet(words, tools);
  if (form < 16) {
    const int kind = random.between(0, 2);
    return kind == 0   ? fact_exchange(words)
           : kind == 1 ? number_exchange(words)
                       : chat_exchange(words, "Sluice");
  }
  const GeneratedTool& tool = random.pick(tools);
  const Request request = make_request(words, tool);
  std::string reasoning = reasoning_for(random, tool, request), text = request.text;
  std::vector<ToolCall> calls{call_of(tool, request, number)};
  if (is_last && form < 26) {
    const GeneratedTool& second = random.pick(tools);
    const Request more = make_request(words, second);
    text += phrase(random, "[ Also: | And then: |\n]") + more.text;
    reasoning += " Then: " + reasoning_for(random, second, more);
    calls.push_back(call_of(second, more, number + 1));
  }
  Exchange out;
  out.messages = {user_message(std::move(text)),
                  calling(random, std::move(reasoning), std::move(calls))};
  out.expected.calls = out.messages.back().tool_calls;
  if (!is_last || (out.expected.calls.size() == 1 && random.percent(40)))
    append_result(words, tool, request, out);
  return out;
}

}  // namespace runtime
