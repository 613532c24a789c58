// The corpus on disk: train.jsonl and held_out.jsonl, one document a line.
#pragma once

#include <string>
#include <vector>

#include "runtime/train/corpus_document.hpp"

namespace runtime {

// The file of a split inside a corpus directory.
std::string corpus_file(const std::string& directory, bool held_out);

// Both throw std::runtime_error naming the file and the line.
void write_corpus_file(const std::string& path, const std::vector<CorpusDocument>& documents);
std::vector<CorpusDocument> read_corpus_file(const std::string& path);

}  // namespace runtime
