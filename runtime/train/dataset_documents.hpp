// The documents of a dataset file, for training.
#pragma once

#include "runtime/train/dataset.hpp"
#include "runtime/train/documents.hpp"

namespace runtime {

class DatasetDocuments final : public Documents {
 public:
  explicit DatasetDocuments(const std::string& path) : dataset_(path) {}

  size_t count() const override { return dataset_.size(); }
  Document document(size_t index) const override {
    const DatasetDocument document = dataset_.document(index);
    return {document.tokens, document.mask, document.source};
  }

 private:
  Dataset dataset_;
};

}  // namespace runtime
