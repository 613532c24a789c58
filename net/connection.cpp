#include "net/connection.hpp"

#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <exception>

#include "net/auth.hpp"
#include "net/generation.hpp"
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
  reply.cors_origin = context_.config.cors_origin;
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
  const auto early = answer_from_header(reader, route, reply);
  if (early && reader.has_unread_body()) {
    co_await send_last(*early, reply);
    co_return false;
  }
  if (early) co_return co_await send(*early, reply);

  const bool body_read = co_await reader.read_body();
  if (!body_read) {
    if (reader.refusal()) co_await send_last(*reader.refusal(), reply);
    co_return false;
  }
  const RequestView request{reader.path(), reader.body()};
  if (route->plain != nullptr) co_return co_await serve_plain(*route, request, reply);
  co_return co_await serve_generation(*route, request, reply);
}

std::optional<Response> Connection::answer_from_header(const RequestReader& reader,
                                                       const Route*& route, Reply& reply) const {
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
    if (!reply.cors_origin.empty()) {
      response.headers.emplace_back("Access-Control-Allow-Methods",
                                    response.headers.front().second);
      response.headers.emplace_back("Access-Control-Allow-Headers", "Authorization, Content-Type");
    }
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
  return std::nullopt;
}

template <class F>
asio::awaitable<void> Connection::run_call(bool slow, F call) {
  if (!slow) {
    call();
    co_return;
  }
  std::atomic<bool> done{false};
  std::exception_ptr failure;
  const auto wake = socket_->waker();
  asio::post(context_.helper, [&] {  // this frame outlives it: the loop below has no other way out
    try {
      call();
    } catch (...) {
      failure = std::current_exception();
    }
    const auto wake_after = wake;  // once done is set, this frame may be gone
    done = true;
    wake_after();
  });
  while (!done) co_await socket_->pause(TimePoint::max());
  if (failure) std::rethrow_exception(failure);
}

asio::awaitable<bool> Connection::serve_plain(const Route& route, const RequestView& request,
                                              const Reply& reply) {
  Response response;
  try {
    co_await run_call(route.slow, [&] { response = route.plain(context_, request); });
  } catch (const std::exception& failure) {
    response = internal_error(failure, context_.config.limits);
  }
  co_return co_await send(response, reply);
}

asio::awaitable<bool> Connection::serve_generation(const Route& route, const RequestView& request,
                                                   Reply& reply) {
  std::optional<kernels::Result<ParsedRequest>> parsed;
  std::optional<Response> refusal;
  Generation generation(context_, *socket_, reply, route.probe);
  ArrivalTimes times{.read_ns = runtime::Trace::global().now_ns()};
  try {
    times.parse_ns = runtime::Trace::global().now_ns();
    const bool slow = request.body.size() > context_.config.limits.offload_bytes;
    co_await run_call(slow, [&] { parsed = route.generation(request.body, context_.service); });
    if (*parsed) {
      if (!(*parsed)->generate.rid.empty()) reply.request_id = (*parsed)->generate.rid;
      ParsedRequest taken = std::move(**parsed);
      co_return co_await generation.run(std::move(taken), times);
    }
    refusal = error_response(parsed->error(), context_.config.limits);
  } catch (const std::exception& failure) {
    if (generation.head_sent()) {
      internal_error(
          failure,
          context_.config.limits);  // for the log: the status is out, so only the close tells
      co_return false;
    }
    refusal = internal_error(failure, context_.config.limits);
  }
  co_return co_await send(*refusal, reply);
}

asio::awaitable<bool> Connection::send(const Response& response, const Reply& reply) {
  ++context_.counters.responses[response.status / 100];
  const std::string wire = to_wire(response, reply);
  const bool written = co_await socket_->write(wire);
  co_return written&& reply.keep_alive;
}

asio::awaitable<void> Connection::send_last(const Response& response, Reply reply) {
  reply.keep_alive = false;
  const bool written = co_await send(response, reply);
  static_cast<void>(written);
  if (!socket_->gone()) co_await socket_->linger();
}

}  // namespace net
