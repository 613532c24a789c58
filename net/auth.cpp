#include "net/auth.hpp"

#include <boost/beast/core/string.hpp>

namespace net {

bool equal_in_constant_time(std::string_view given, std::string_view expected) {
  // Walks the client's text, whose length it knows already; a different length only flips the
  // verdict.
  unsigned difference = given.size() == expected.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char other = expected.empty() ? '\0' : expected[i % expected.size()];
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(other);
  }
  return difference == 0;
}

bool is_authorized(std::string_view authorization, std::string_view expected_key) {
  if (expected_key.empty()) return true;
  constexpr std::string_view kScheme = "Bearer ";
  if (authorization.size() < kScheme.size()) return false;
  const auto scheme = authorization.substr(0, kScheme.size());
  if (!boost::beast::iequals({scheme.data(), scheme.size()}, {kScheme.data(), kScheme.size()}))
    return false;
  auto key = authorization.substr(kScheme.size());
  while (!key.empty() && key.front() == ' ') key.remove_prefix(1);
  return equal_in_constant_time(key, expected_key);
}

}  // namespace net
