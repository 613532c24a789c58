// Finds documents that repeat earlier ones, by the runs of eight words (shingles) they share.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace runtime {

class NearDuplicates {
 public:
  // The index of the earlier document that `text` repeats: at least 70 % of its shingles stood in
  // kept documents (the answer shares most), or it holds at least half of a protected document.
  // Otherwise the text is kept under `index`; a protected one also against being quoted at length.
  std::optional<size_t> add(std::string_view text, size_t index, bool is_protected);

 private:
  struct Kept {
    size_t index = 0;
    uint32_t shingles = 0;  // that no document before it had
    bool is_protected = false;
  };
  std::vector<Kept> kept_;
  std::unordered_map<uint64_t, uint32_t> first_holder_;  // shingle -> place in kept_
};

}  // namespace runtime
