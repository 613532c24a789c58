// Errors in OpenAI's shape.
#include "net/openai_api.hpp"
#include "net/openai_writer.hpp"

namespace net {
namespace {

struct ErrorWords {
  std::string_view type, code;
};

// Clients branch on `type` and `code`; an empty code is written as null.
ErrorWords words_of(const kernels::Error& error, unsigned status) {
  switch (status) {
    case 401:
      return {"authentication_error", "invalid_api_key"};
    case 404:
      return {"invalid_request_error", error.param == "model" ? "model_not_found" : "not_found"};
    case 405:
      return {"invalid_request_error", "method_not_allowed"};
    case 408:
      return {"timeout_error", "timeout"};
    case 413:
      return {"invalid_request_error", "request_too_large"};
    case 429:
      return {"rate_limit_error", "rate_limit_exceeded"};
    case 499:
      return {"invalid_request_error", "request_cancelled"};
    case 503:
      return {"server_error", "service_unavailable"};
    default:
      return status < 500 ? ErrorWords{"invalid_request_error", ""}
                          : ErrorWords{"server_error", "internal_error"};
  }
}

}  // namespace

std::string error_json(const kernels::Error& error, unsigned status) {
  const auto nullable = [](std::string& out, std::string_view text) {
    if (text.empty())
      out += "null";
    else
      append_quoted(out, text);
  };
  const ErrorWords words = words_of(error, status);
  std::string out = "{\"error\":{\"message\":";
  append_quoted(out, error.message);
  out += ",\"type\":";
  append_quoted(out, words.type);
  out += ",\"param\":";
  nullable(out, error.param);
  out += ",\"code\":";
  nullable(out, words.code);
  out += "}}";
  return out;
}

unsigned http_status(kernels::ErrorCode code) {
  switch (code) {
    case kernels::ErrorCode::kInvalid:
      return 400;
    case kernels::ErrorCode::kNotFound:
      return 404;
    case kernels::ErrorCode::kFull:
      return 429;
    case kernels::ErrorCode::kTimeout:
      return 408;
    case kernels::ErrorCode::kCancelled:
      return 499;
    case kernels::ErrorCode::kUnavailable:
      return 503;
    case kernels::ErrorCode::kInternal:
      return 500;
  }
  return 500;
}

}  // namespace net
