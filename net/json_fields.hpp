// Reads typed fields out of a request's JSON. The first wrong field becomes the error, with its
// path, its value and what is right.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"

namespace net {

inline constexpr size_t kJsonDepthMax =
    64;  // deeper is a mistake or an attack; a tool's schema needs about 2 per level

// How an error message shows a value: scalars as written (long strings cut), "an array", "an
// object".
std::string describe(const boost::json::value& value);

// How messages name an element: "tools[3]".
std::string element(std::string_view list, size_t index);

struct NumberRange {
  double low = 0, high = 0;
  bool open_low = false;  // `low` itself is not allowed
};
struct IntegerRange {
  int64_t low = 0, high = 0;
};

// The integer a JSON number stands for (16 and 16.0 alike); empty for anything else, or if it does
// not fit.
std::optional<int64_t> exact_integer(const boost::json::value& value);

// A view of one object of a JsonBody. null counts as absent; unknown fields are nobody's business.
// Invariant: the first failure is the one kept; a field that fails reads as absent.
class Fields {
 public:
  // `path` names the object in messages ("" at the top, "messages[2]" inside); `error` is shared by
  // all views of a body.
  Fields(const boost::json::object& object, std::string path, std::optional<kernels::Error>& error);
  // A view of `object`, which is this one's field `name`.
  Fields inside(std::string_view name, const boost::json::object& object) const;

  const boost::json::value* find(std::string_view name) const;  // nullptr: absent or null
  std::optional<bool> boolean(std::string_view name);
  std::optional<double> number(std::string_view name, NumberRange range);
  std::optional<int64_t> integer(std::string_view name, IntegerRange range);
  std::optional<std::string> string(std::string_view name);
  // One of the listed words.
  std::optional<std::string> word(std::string_view name,
                                  const std::vector<std::string_view>& words);
  const boost::json::object* object(std::string_view name);
  const boost::json::array* array(std::string_view name);

  std::string path(std::string_view name) const;
  // `<path> <complaint>`, with the path as the error's param.
  void fail(std::string_view name, std::string_view complaint);
  void fail(kernels::Error error);
  // `<path> must be <expected>, got <value>`
  void expected(std::string_view name, std::string_view what, const boost::json::value& got);
  bool ok() const { return !error_.has_value(); }

 private:
  const boost::json::object& object_;
  std::string path_;
  std::optional<kernels::Error>& error_;
};

// The body of a request: its object, and the first error that was found in it. Of a body that is no
// JSON object that is the error, and no field is there. A repeated key: the last one wins.
class JsonBody {
 public:
  // `what`: how errors name the text.
  explicit JsonBody(std::string_view text, std::string_view what = "the body");
  JsonBody(const JsonBody&) = delete;
  JsonBody& operator=(const JsonBody&) = delete;

  Fields fields() { return Fields(object_, "", error_); }  // valid while the body lives
  const std::optional<kernels::Error>& error() const { return error_; }

 private:
  boost::json::object object_;
  std::optional<kernels::Error> error_;
};

}  // namespace net
