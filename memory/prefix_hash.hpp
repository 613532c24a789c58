// Names a prefix by 128 bits: a hash chained over its pages, from a root that is its namespace. Two
// prefixes with one name are taken for equal wherever their elements are not at hand (host memory,
// a file), so the mixing is a keyless SipHash with two rounds an element, not a fast sum.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>

namespace memory {

struct PrefixHash {
  uint64_t a = 0, b = 0;
  auto operator<=>(const PrefixHash&) const = default;
  auto fields() { return std::tie(a, b); }
};

// A position of a prefix, as it is known without the prefix itself.
struct PrefixPoint {
  PrefixHash prefix;  // of all elements before `position`
  // The page that must be there for this one to be of use: a page's is the one before it, a state's
  // the one that ends with it.
  PrefixHash needs;
  uint64_t name_space = 0;
  uint32_t position = 0;  // end of the page, or of what the state has consumed
  bool operator==(const PrefixPoint&) const = default;
  auto fields() { return std::tie(prefix, needs, name_space, position); }
};

class PrefixMixer {
 public:
  explicit PrefixMixer(PrefixHash from)
      : v0_(from.a ^ 0x736f6d6570736575),
        v1_(from.b ^ 0x646f72616e646f6d),
        v2_(from.a ^ 0x6c7967656e657261),
        v3_(from.b ^ 0x7465646279746573) {}
  void add(uint64_t element) {
    v3_ ^= element;
    rounds(2);
    v0_ ^= element;
  }
  PrefixHash finish() {
    v2_ ^= 0xee;
    rounds(4);
    const uint64_t a = v0_ ^ v1_ ^ v2_ ^ v3_;
    v1_ ^= 0xdd;
    rounds(4);
    return {a, v0_ ^ v1_ ^ v2_ ^ v3_};
  }

 private:
  void rounds(int count) {
    for (; count > 0; --count) {
      v0_ += v1_;
      v2_ += v3_;
      v1_ = std::rotl(v1_, 13) ^ v0_;
      v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ = std::rotl(v0_, 32);
      v2_ += v1_;
      v0_ += v3_;
      v1_ = std::rotl(v1_, 17) ^ v2_;
      v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ = std::rotl(v2_, 32);
    }
  }
  uint64_t v0_, v1_, v2_, v3_;
};

// Of the empty prefix.
inline PrefixHash root_prefix(uint64_t name_space) {
  PrefixMixer mixer({});
  mixer.add(name_space);
  return mixer.finish();
}

// Of a prefix and one more page.
inline PrefixHash next_prefix(PrefixHash prefix, std::span<const uint64_t> page) {
  PrefixMixer mixer(prefix);
  for (const uint64_t element : page) mixer.add(element);
  return mixer.finish();
}

// Of a prefix and any number of whole pages.
inline PrefixHash next_prefix(PrefixHash prefix, std::span<const uint64_t> span,
                              uint32_t page_tokens) {
  for (size_t at = 0; at < span.size(); at += page_tokens)
    prefix = next_prefix(prefix, span.subspan(at, page_tokens));
  return prefix;
}

}  // namespace memory

template <>
struct std::hash<memory::PrefixHash> {
  size_t operator()(const memory::PrefixHash& prefix) const noexcept { return prefix.a; }
};
