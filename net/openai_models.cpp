// /v1/models.
#include <ctime>

#include "net/openai_api.hpp"
#include "net/openai_writer.hpp"

namespace net {
namespace {

int64_t start_seconds() {
  static const int64_t start = static_cast<int64_t>(
      std::time(nullptr));  // a model's `created` does not change between calls
  return start;
}

}  // namespace

std::string model_json(const actors::ServiceInfo& info, std::string_view id) {
  std::string out = "{\"id\":";
  append_quoted(out, id);
  out += ",\"object\":\"model\",\"created\":";
  append_integer(out, start_seconds());
  out += ",\"owned_by\":\"sluice\",\"root\":";
  append_quoted(out, info.model_path);
  out += ",\"parent\":null,\"max_model_len\":";
  append_integer(out, info.context_length);
  out += '}';
  return out;
}

std::string models_json(const actors::ServiceInfo& info) {
  const std::string model = model_json(info, info.model_name);
  // Most clients read `data`; some look for `models`.
  return "{\"object\":\"list\",\"data\":[" + model + "],\"models\":[" + model + "]}";
}

}  // namespace net
