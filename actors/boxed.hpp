// A message element with one owner: it is moved from sender to receiver and never copied. CAF
// instantiates the copy of every element, so the copy exists, but reaching it means that a handler
// takes its argument by value: a broken program.
#pragma once

#include <caf/allowed_unsafe_message_type.hpp>
#include <memory>
#include <utility>

#include "kernels/base/verify.hpp"

namespace actors {

template <class T>
class Boxed {
 public:
  Boxed() = default;
  explicit Boxed(T value) : value_(std::make_unique<T>(std::move(value))) {}
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(Boxed&&) noexcept = default;
  Boxed(const Boxed& other) : value_() { VERIFY(other.value_ == nullptr); }
  Boxed& operator=(const Boxed&) = delete;
  ~Boxed() = default;

  const T& peek() const { return *value_; }
  T take() {
    VERIFY(value_ != nullptr);
    const auto value = std::move(value_);
    return std::move(*value);
  }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace actors

template <class T>
struct caf::allowed_unsafe_message_type<actors::Boxed<T>> : std::true_type {};
