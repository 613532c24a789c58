// Expected failures as values: Result<T> holds a T or an Error.
#pragma once

#include <boost/system/result.hpp>
#include <stdexcept>
#include <string>
#include <utility>

namespace kernels {

// What kind of failure this is; net/ maps each to an HTTP status, actors/ to a caf::error.
enum class ErrorCode {
  kInvalid,      // the request or file is wrong and will stay wrong (400)
  kNotFound,     // an id or file that does not exist (404)
  kFull,         // a bounded queue or pool is full; try later (429)
  kTimeout,      // a deadline passed (408)
  kCancelled,    // aborted by the client or an operator
  kUnavailable,  // starting up or draining (503)
  kInternal,     // the engine failed this request, e.g. non-finite logits (500)
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // a sentence: names the field or file, what was wrong, what would be right
  std::string param;    // the offending request field, empty if none
};

template <class T>
using Result = boost::system::result<T, Error>;

inline Error invalid(std::string message, std::string param = {}) {
  return {ErrorCode::kInvalid, std::move(message), std::move(param)};
}

// boost::system::result calls this (found by ADL) when value() is asked of a failed result.
[[noreturn]] inline void throw_exception_from_error(const Error& error,
                                                    const boost::source_location&) {
  throw std::runtime_error(error.message);
}

}  // namespace kernels
