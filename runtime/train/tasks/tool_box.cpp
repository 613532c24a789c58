#include "runtime/train/tasks/tool_box.hpp"

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>

#include "runtime/train/tasks/phrase.hpp"

namespace runtime {

namespace json = boost::json;

namespace {

std::string tool_name(TaskRandom& random, const std::string& verb, const std::string& object) {
  switch (random.between(0, 5)) {
    case 0:
      return verb + capitalised(object);
    case 1:
      return verb + "-" + object;
    case 2:
      return object + "_" + verb;
    case 3:
      return object + "." + verb;
    default:
      return verb + "_" + object;
  }
}

GeneratedTool made_up_tool(TaskWords& words) {
  TaskRandom& random = words.random();
  GeneratedTool tool;
  tool.verb = words.one(WordList::kVerbs);
  tool.object =
      random.percent(50) ? words.one(WordList::kThings) : words.made_up(random.between(2, 3));
  tool.name = tool_name(random, tool.verb, tool.object);
  tool.description =
      phrase(random,
             "[{Verb} the {object}|{Verb} a {object}|Can {verb} the {object}|{Verb} {object}s for "
             "the user|Use this to {verb} the {object}][|.]",
             {{"verb", tool.verb}, {"Verb", capitalised(tool.verb)}, {"object", tool.object}});
  const int count = random.percent(10) ? 0 : random.between(1, 4);
  for (int i = 0; i < count; ++i) {
    ToolParameter parameter;
    do {
      parameter.name = random.percent(60) ? words.one(WordList::kFields) : words.identifier();
    } while (std::any_of(tool.parameters.begin(), tool.parameters.end(),
                         [&](const auto& other) { return other.name == parameter.name; }));
    parameter.kind = some_tool_value_kind(random);
    if (random.percent(40)) {
      parameter.description = phrase(
          random, "[The {field} of the {object}|Which {field} to use|{field} to {verb} with]",
          {{"field", parameter.name}, {"object", tool.object}, {"verb", tool.verb}});
    }
    parameter.required = i == 0 || random.percent(70);
    tool.parameters.push_back(std::move(parameter));
  }
  return tool;
}

GeneratedTool everyday_tool(TaskWords& words, const ToolPattern& pattern) {
  TaskRandom& random = words.random();
  GeneratedTool tool;
  tool.pattern = &pattern;
  tool.name = phrase(random, pattern.name);
  tool.description = phrase(random, pattern.description);
  tool.parameters = parse_parameters(pattern.parameters);
  return tool;
}

}  // namespace

std::vector<ToolParameter> parse_parameters(std::string_view list) {
  std::vector<ToolParameter> out;
  while (!list.empty()) {
    const size_t end = std::min(list.find(';'), list.size());
    const std::string_view item = list.substr(0, end);
    const size_t colon = item.find(':');
    out.push_back({std::string(item.substr(0, colon)), std::string(item.substr(colon + 1)), {}});
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return out;
}

std::vector<GeneratedTool> make_tool_box(TaskWords& words, size_t count) {
  TaskRandom& random = words.random();
  std::vector<const ToolPattern*> patterns;
  for (const ToolPattern& pattern : tool_patterns()) patterns.push_back(&pattern);
  random.shuffle(patterns);
  std::vector<GeneratedTool> tools;
  while (tools.size() < count) {
    GeneratedTool tool =
        random.percent(50) ? made_up_tool(words) : everyday_tool(words, *patterns[tools.size()]);
    const bool is_known = std::any_of(tools.begin(), tools.end(), [&](const GeneratedTool& other) {
      return other.name == tool.name ||
             (tool.pattern == nullptr &&
              other.object == tool.object);  // who is meant must be clear
    });
    if (is_known) continue;
    std::sort(tool.parameters.begin(), tool.parameters.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    tools.push_back(std::move(tool));
  }
  return tools;
}

json::array declare_tools(TaskWords& words, const std::vector<GeneratedTool>& tools) {
  json::array out;
  for (const GeneratedTool& tool : tools) {
    json::object properties;
    json::array required;
    for (const ToolParameter& parameter : tool.parameters) {
      json::object schema = make_tool_value(words, parameter.kind).schema;
      if (!parameter.description.empty()) schema["description"] = parameter.description;
      properties[parameter.name] = std::move(schema);
      if (parameter.required) required.emplace_back(parameter.name);
    }
    json::object parameters{{"type", "object"}, {"properties", std::move(properties)}};
    if (!required.empty()) parameters["required"] = std::move(required);
    out.push_back({{"type", "function"},
                   {"function",
                    {{"name", tool.name},
                     {"description", tool.description},
                     {"parameters", std::move(parameters)}}}});
  }
  return out;
}

}  // namespace runtime
