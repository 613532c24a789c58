// The entries of a dictd dictionary: a gzip-readable text and an index of where each entry lies.
#pragma once

#include <string>
#include <vector>

namespace runtime {

struct DictionaryEntry {
  std::string headword, text;
};

// Reads STEM.dict.dz and STEM.index; entries come in the order of the text, those about the
// database itself ("00-database-...") left out. Throws std::runtime_error naming the file.
std::vector<DictionaryEntry> read_dictionary(const std::string& stem);

}  // namespace runtime
