// Documents as token ids, ready to train on: one safetensors file, mapped and read in place.
//   ends [documents] I64: one past the last token of each    source [documents] U8: a TextSource
//   tokens [N] U16                                            mask [N] U8: 1 where the token is
//   learnt
// Invariant: documents are not empty, follow each other without a gap, and hold no learnt first
// token, because nothing predicts it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/safetensors.hpp"
#include "runtime/train/text_source.hpp"

namespace runtime {

struct DatasetDocument {
  std::span<const uint16_t> tokens;
  std::span<const uint8_t> mask;  // as many
  TextSource source = TextSource::kPython;
};

class Dataset {
 public:
  // Throws std::runtime_error naming the file, the tensor and what is wrong.
  explicit Dataset(const std::string& path);

  size_t size() const { return ends_.size(); }  // documents
  size_t tokens() const { return tokens_.size(); }
  DatasetDocument document(size_t index) const;

 private:
  SafeTensorsFile file_;
  std::span<const int64_t> ends_;
  std::span<const uint16_t> tokens_;
  std::span<const uint8_t> mask_, sources_;
};

// Collects documents and writes them to a file.
class DatasetWriter {
 public:
  // The two lists are of one length, not empty; a mask on the first token is dropped.
  void add(std::span<const uint16_t> tokens, std::span<const uint8_t> mask, TextSource source);
  void write(const std::string& path) const;  // throws std::runtime_error naming the path

 private:
  std::vector<uint16_t> tokens_;
  std::vector<uint8_t> mask_, sources_;
  std::vector<int64_t> ends_;
};

}  // namespace runtime
