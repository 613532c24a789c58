// Which documents of which Debian packages are text to learn from, under which licence, and how
// their files become text.
#pragma once

#include <string>
#include <vector>

#include "runtime/train/corpus_document.hpp"

namespace runtime {

struct CorpusPackage {
  std::string name, version, licence;
  bool may_be_held_out = false;
  std::vector<CorpusDocument> documents;  // by path
};

// The packages in a fixed order. `root` stands before every path ("" for this machine). Throws
// std::runtime_error: packages that are missing are named with the apt line that installs them.
std::vector<CorpusPackage> read_corpus_packages(const std::string& root);

}  // namespace runtime
