#include "net/admin_protocol.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "net/console_answer.hpp"
#include "net/openai_api.hpp"
#include "runtime/utf8.hpp"

namespace net {
namespace {

namespace json = boost::json;

kernels::Result<json::object> parse_line(std::string_view line) {
  if (runtime::find_invalid_utf8(line) != std::string_view::npos)
    return kernels::invalid("the line is not valid UTF-8");
  json::error_code code;
  json::parse_options options;
  options.max_depth = 8;
  const json::value value = json::parse({line.data(), line.size()}, code, {}, options);
  if (code) return kernels::invalid("the line is not valid JSON: " + code.message());
  if (!value.is_object()) return kernels::invalid("the line must be a JSON object, {\"cmd\": ...}");
  return value.get_object();
}

}  // namespace

AdminReply admin_error(const kernels::Error& error) {
  const json::object body{
      {"ok", false}, {"error", json::object{{"message", error.message}, {"param", error.param}}}};
  return {json::serialize(body), http_status(error.code)};
}

AdminReply answer_admin_line(std::string_view line, ConsoleSource& source) {
  const auto command = parse_line(line);
  if (!command) return admin_error(command.error());
  auto answer = console_answer(*command, source);
  if (!answer) return admin_error(answer.error());
  return {json::serialize(json::object{{"ok", true}, {"result", std::move(*answer)}}), 200};
}

}  // namespace net
