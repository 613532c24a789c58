// A document of the corpus, which of its packages it belongs to, and on which side of the held-out
// line it falls.
#pragma once

#include <string>
#include <string_view>

namespace runtime {

struct CorpusDocument {
  std::string package;
  std::string path;  // as installed; "FILE#PART" for a part of a file
  std::string text;  // UTF-8
};

std::string sha256_hex(std::string_view bytes);

// True for one document in fifty, whatever else is installed: sha256(package + path), read as a
// big-endian number of 32 bytes, is a multiple of 50. The two strings follow each other directly.
bool is_in_held_out_fiftieth(const CorpusDocument& document);

}  // namespace runtime
