#include "net/connection.hpp"

#include <cstdio>
#include <exception>

#include "net/auth.hpp"
#include "net/helper_call.hpp"
#include "net/send_response.hpp"
#include "net/server_state.hpp"
#include "runtime/trace.hpp"

namespace net {
namespace {

namespace http = boost::beast::http;

Response internal_error(const std::exception& failure, const HttpLimits& limits) {
  std::fprintf(stderr, "http: a request failed: %s\n", failure.what());
  return error_response({kernels::ErrorCode::kInternal, "the server failed on this request", {}},
                        limits);
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, ServerContext& context)
    : context_(context),
      socket_(std::make_shared<ClientSocket>(std::move(socket), context.config.limits)),
      open_(context.connections) {}

asio::awaitable<void> Connection::run() {
  for (bool open = true; open && !socket_->stopped();) open = co_await serve_one();
  socket_->close();
}

asio::awaitable<void> Connection::refuse() {
  ++context_.counters.refused_connections;
  const kernels::Error full{kernels::ErrorCode::kUnavailable, "too many open connections", {}};
  const Response response = error_response(full, context_.config.limits);
  const Reply reply;  // named: GCC 12 destroys a temporary in a co_await expression twice
  co_await send_last(response, reply);
  socket_->close();
}

asio::awaitable<bool> Connection::serve_one() {
  RequestReader reader(*socket_, context_.config.limits);
  Reply reply;
  const bool header_read = co_await reader.read_header();
  if (!header_read) {
    if (reader.refusal()) co_await send_last(*reader.refusal(), reply);
    co_return false;
  }

  const Activity::Guard in_progress(context_.requests);
  reply.http11 = reader.http11();
  reply.keep_alive = reader.keep_alive() && !context_.draining;
  reply.head_only = reader.method() == "HEAD";
  reply.request_id = "req-" + std::to_string(context_.next_request++);
  const Route* route = nullptr;
  const auto early = answer_from_header(reader, route);
  if (early && reader.has_unread_body()) {
    co_await send_last(*early, reply);
    co_return false;
  }
  if (early) co_return co_await send(*early, reply);

  const bool read = co_await reader.read_request();
  if (!read) {
    if (reader.refusal()) co_await send_last(*reader.refusal(), reply);
    co_return false;
  }
  if (route->plain != nullptr) co_return co_await serve_plain(*route, reader, reply);
  co_return co_await serve_generation(*route, reader, reply);
}

std::optional<Response> Connection::answer_from_header(const RequestReader& reader,
                                                       const Route*& route) const {
  const HttpLimits& limits = context_.config.limits;
  const std::string_view method = reader.method();
  const std::string path(reader.path());
  route = find_route(path);
  if (method == "OPTIONS" &&
      (route != nullptr || path == "*")) {  // preflight: browsers send no key with it
    Response response;
    response.status = 204;
    response.headers.emplace_back(
        "Allow", route != nullptr ? route->allowed_methods() : "GET, HEAD, POST, OPTIONS");
    return response;
  }
  const bool open = route != nullptr && route->open;
  if (!open && !is_authorized(reader.header(http::field::authorization), context_.config.api_key)) {
    const std::string message =
        "an API key is required: send \"Authorization: Bearer <key>\" with the server's key";
    Response response = error_response(kernels::invalid(message), 401, limits);
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
  }
  if (route == nullptr)
    return error_response({kernels::ErrorCode::kNotFound, "unknown path " + path, {}}, limits);
  if (!route->allows(method)) {
    const std::string allowed = route->allowed_methods();
    const std::string message = path + " takes " + allowed + ", not " + std::string(method);
    Response response = error_response(kernels::invalid(message), 405, limits);
    response.headers.emplace_back("Allow", allowed);
    return response;
  }
  if (route->needs_model && !context_.service.ready()) {
    return error_response(unavailable(state_of(context_)), limits);
  }
  return std::nullopt;
}

bool Connection::is_slow(const Route& route, const std::string& body) const {
  return route.slow || body.size() > context_.config.limits.offload_bytes;
}

asio::awaitable<bool> Connection::serve_plain(const Route& route, RequestReader& reader,
                                              const Reply& reply) {
  const std::string body = reader.take_body();
  const bool slow = is_slow(route, body);
  Response response;
  if (slow) socket_->watch({}, ClientSocket::half_close_of_whole(reply.http11));
  try {
    const bool ran =
        co_await run_call(context_, *socket_, slow, [&](const runtime::KeepGoing& keep_going) {
          response = route.plain(context_, {route.rest_of(reader.path()), body, keep_going});
        });
    if (!ran) response = error_response(unavailable(state_of(context_)), context_.config.limits);
  } catch (const std::exception& failure) {
    response = internal_error(failure, context_.config.limits);
  }
  socket_->unwatch();
  co_return co_await send(response, reply);
}

// The body ends here: an answer may take minutes, and needs nothing of it.
asio::awaitable<kernels::Result<ParsedRequest>> Connection::parse(const Route& route,
                                                                  RequestReader& reader,
                                                                  ArrivalTimes& times) {
  const std::string body = reader.take_body();
  std::optional<kernels::Result<ParsedRequest>> parsed;
  co_await run_call(context_, *socket_, is_slow(route, body), [&](const runtime::KeepGoing&) {
    parsed = route.generation(body, context_.service);
  });
  times = {reader.read_ns(), runtime::Trace::global().now_ns()};
  if (!parsed) co_return unavailable(state_of(context_));
  co_return std::move(*parsed);
}

asio::awaitable<bool> Connection::serve_generation(const Route& route, RequestReader& reader,
                                                   Reply reply) {
  std::optional<Response> refusal;
  Generation generation(context_, *socket_);
  try {
    ArrivalTimes times;
    auto parsed = co_await parse(route, reader, times);
    if (parsed) {
      if (!parsed->generate.rid.empty()) reply.request_id = parsed->generate.rid;
      GenerationTerms terms = route.terms(context_);
      co_return co_await generation.run(*std::move(parsed), reply, std::move(terms), times);
    }
    refusal = error_response(parsed.error(), context_.config.limits);
  } catch (const std::exception& failure) {
    refusal = internal_error(failure, context_.config.limits);
    if (generation.head_sent()) co_return false;  // the status is out: only the close tells
  }
  co_return co_await send(*refusal, reply);
}

asio::awaitable<bool> Connection::send(const Response& response, const Reply& reply) {
  co_return co_await send_response(response, reply, *socket_, context_.counters);
}

asio::awaitable<void> Connection::send_last(const Response& response, Reply reply) {
  reply.keep_alive = false;
  const bool written = co_await send(response, reply);
  static_cast<void>(written);
  if (!socket_->gone()) co_await socket_->linger();
}

}  // namespace net
