#include "runtime/train/corpus_document.hpp"

#include <openssl/evp.h>

#include <array>

#include "kernels/base/verify.hpp"

namespace runtime {

namespace {

using Digest = std::array<unsigned char, 32>;

Digest sha256(std::string_view bytes) {
  Digest digest{};
  unsigned int size = 0;
  const int ok =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  VERIFY(ok == 1);
  VERIFY(size == digest.size());
  return digest;
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : sha256(bytes)) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

bool is_in_held_out_fiftieth(const CorpusDocument& document) {
  unsigned int remainder = 0;
  for (const unsigned char byte : sha256(document.package + document.path))
    remainder = (remainder * 256 + byte) % 50;
  return remainder == 0;
}

}  // namespace runtime
