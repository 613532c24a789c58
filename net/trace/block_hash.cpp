#include "net/trace/block_hash.hpp"

namespace net {

std::vector<uint64_t> block_hashes(std::span<const runtime::TokenId> tokens, uint32_t block_tokens,
                                   memory::PrefixHash root) {
  std::vector<uint64_t> hashes;
  hashes.reserve(tokens.size() / block_tokens);
  for (; tokens.size() >= block_tokens; tokens = tokens.subspan(block_tokens)) {
    memory::PrefixMixer mixer(root);
    for (const runtime::TokenId token : tokens.first(block_tokens))
      mixer.add(static_cast<uint64_t>(token));
    root = mixer.finish();
    hashes.push_back(root.a >> 11);
  }
  return hashes;
}

}  // namespace net
