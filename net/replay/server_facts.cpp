#include "net/replay/server_facts.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <chrono>
#include <stdexcept>

namespace net {

namespace json = boost::json;

namespace {

constexpr std::chrono::seconds kPatience{30};

// Of a question that a plain HTTP server answers at once.
HttpReply answer_of(const HttpTarget& target, const std::string& path) {
  asio::io_context context;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  auto reply = asio::co_spawn(context, fetch(target, {path, {}}, deadline), asio::use_future);
  context.run();
  try {
    return reply.get();
  } catch (const boost::system::system_error& failed) {
    throw std::runtime_error("no server answers at " + target.address.url() + ": " +
                             failed.code().message());
  }
}

json::object object_of(const HttpReply& reply) {
  json::error_code failed;
  json::value value = json::parse(reply.body, failed);
  return reply.status != 200 || failed || !value.is_object() ? json::object()
                                                             : std::move(value.get_object());
}

std::string first_model(const HttpTarget& target) {
  const std::string where = target.address.url() + "/v1/models";
  const HttpReply reply = answer_of(target, "/v1/models");
  if (reply.status == 401 || reply.status == 403) {
    throw std::runtime_error(where + " answers " + std::to_string(reply.status) +
                             "; the server expects " +
                             (target.api_key.empty() ? "a key (api-key)" : "another key"));
  }
  const json::object body = object_of(reply);
  const json::value* data = body.if_contains("data");
  if (data != nullptr && data->is_array() && !data->get_array().empty()) {
    const json::object* model = data->get_array().front().if_object();
    const json::value* id = model == nullptr ? nullptr : model->if_contains("id");
    if (id != nullptr && id->is_string()) return std::string(id->get_string().c_str());
  }
  throw std::runtime_error(where + " answers " + std::to_string(reply.status) +
                           " and names no model; name it in the scenario ([live] model)");
}

uint32_t vocabulary_in(const json::object& info) {
  const json::value* size = info.if_contains("vocab_size");
  json::error_code failed;
  const auto value = size == nullptr || !size->is_number() ? 0 : size->to_number<uint32_t>(failed);
  return failed ? 0 : value;
}

}  // namespace

ServerFacts ask_server(const HttpTarget& target, const LiveServer& server) {
  ServerFacts facts;
  facts.model = server.model.empty() ? first_model(target) : server.model;
  json::object info = object_of(answer_of(target, "/get_server_info"));
  facts.vocabulary = vocabulary_in(info);
  facts.is_sluice = answer_of(target, "/metrics").body.rfind("# HELP sluice:", 0) == 0;
  if (facts.is_sluice) facts.info = std::move(info);
  if (facts.vocabulary == 0) {
    const HttpReply reply = answer_of(target, "/get_model_info");
    facts.vocabulary = vocabulary_in(object_of(reply));
  }
  return facts;
}

}  // namespace net
