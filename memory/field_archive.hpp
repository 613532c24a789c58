// Any struct with fields() as bytes, through cereal: messages that are kept or compared.
#pragma once

#include <cereal/types/optional.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>
#include <concepts>
#include <tuple>

namespace memory {

template <class T>
concept HasFields = requires(T& value) { value.fields(); };

template <class Archive, HasFields T>
void serialize(Archive& archive, T& value) {
  std::apply([&]([[maybe_unused]] auto&... field) { (archive(field), ...); }, value.fields());
}

}  // namespace memory
