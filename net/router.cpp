#include "net/router.hpp"

#include <array>

#include "net/admin_routes.hpp"
#include "net/health_probe.hpp"

namespace net {
namespace {

constexpr std::array kRoutes{
    Route{.path = "/v1/chat/completions",
          .post = true,
          .generation = parse_chat_request,
          .needs_model = true},
    Route{.path = "/v1/completions",
          .post = true,
          .generation = parse_completion_request,
          .needs_model = true},
    Route{.path = "/v1/models", .get = true, .plain = models, .needs_model = true},
    Route{.path = "/v1/models/", .get = true, .plain = model, .needs_model = true},
    Route{.path = "/tokenize", .post = true, .plain = tokenize, .slow = true, .needs_model = true},
    Route{
        .path = "/v1/tokenize", .post = true, .plain = tokenize, .slow = true, .needs_model = true},
    Route{.path = "/detokenize",
          .post = true,
          .plain = detokenize,
          .slow = true,
          .needs_model = true},
    Route{.path = "/v1/detokenize",
          .post = true,
          .plain = detokenize,
          .slow = true,
          .needs_model = true},
    Route{.path = "/health", .get = true, .plain = health, .open = true},
    Route{.path = "/health_generate",
          .get = true,
          .generation = make_health_probe,
          .needs_model = true,
          .terms = probe_terms},
    Route{.path = "/metrics", .get = true, .plain = metrics},
    Route{.path = "/get_server_info", .get = true, .plain = server_info},
    Route{.path = "/server_info", .get = true, .plain = server_info},
    Route{.path = "/get_model_info", .get = true, .plain = model_info, .needs_model = true},
    Route{.path = "/model_info", .get = true, .plain = model_info, .needs_model = true},
    Route{.path = "/abort_request", .post = true, .plain = abort_request},
    Route{.path = "/admin", .post = true, .plain = admin, .slow = true, .needs_model = true},
    Route{.path = "/flush_cache", .get = true, .post = true, .plain = flush_cache},
};

bool matches(const Route& route, std::string_view path) {
  if (route.path.back() != '/') return path == route.path;
  return path.size() > route.path.size() && path.substr(0, route.path.size()) == route.path;
}

}  // namespace

std::string_view Route::rest_of(std::string_view request_path) const {
  return request_path.substr(path.size());
}

bool Route::allows(std::string_view method) const {
  return (get && (method == "GET" || method == "HEAD")) || (post && method == "POST");
}

std::string Route::allowed_methods() const {
  std::string methods;
  if (get) methods += "GET, HEAD, ";
  if (post) methods += "POST, ";
  return methods + "OPTIONS";
}

const Route* find_route(std::string_view path) {
  for (const Route& route : kRoutes) {
    if (matches(route, path)) return &route;
  }
  return nullptr;
}

}  // namespace net
