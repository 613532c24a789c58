#include "runtime/train/dataset.hpp"

#include <cstring>
#include <stdexcept>

#include "kernels/base/verify.hpp"
#include "runtime/safetensors_writer.hpp"

namespace runtime {

namespace {

template <class T>
std::span<const T> read_list(const SafeTensorsFile& file, const char* name, const char* dtype) {
  const auto fail = [&](const std::string& problem) {
    throw std::runtime_error(file.path() + ": tensor " + name + ": " + problem +
                             "; `sluice-train dataset` writes such a file");
  };
  const StoredTensor* tensor = file.find(name);
  if (tensor == nullptr) fail("is missing");
  if (tensor->dtype != dtype || tensor->shape.size() != 1) {
    fail("is " + tensor->dtype + " " + shape_text(tensor->shape) + "; expected a list of " + dtype);
  }
  if (reinterpret_cast<uintptr_t>(tensor->data.data()) % alignof(T) != 0)
    fail("does not begin on a multiple of " + std::to_string(alignof(T)) + " bytes");
  return {reinterpret_cast<const T*>(tensor->data.data()), tensor->data.size() / sizeof(T)};
}

template <class T>
void add_list(SafeTensorsWriter& writer, const char* name, const char* dtype,
              const std::vector<T>& list) {
  writer.add(name, dtype, {list.size()}, [&list](std::span<std::byte> data) {
    if (!list.empty()) std::memcpy(data.data(), list.data(), data.size());
  });
}

}  // namespace

Dataset::Dataset(const std::string& path) : file_(path) {
  ends_ = read_list<int64_t>(file_, "ends", "I64");
  tokens_ = read_list<uint16_t>(file_, "tokens", "U16");
  mask_ = read_list<uint8_t>(file_, "mask", "U8");
  sources_ = read_list<uint8_t>(file_, "source", "U8");
  const auto fail = [&](const std::string& problem) {
    throw std::runtime_error(path + ": " + problem);
  };
  if (mask_.size() != tokens_.size()) fail("mask and tokens differ in length");
  if (sources_.size() != ends_.size()) fail("source and ends differ in length");
  int64_t begin = 0;
  for (size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i] <= begin || ends_[i] > static_cast<int64_t>(tokens_.size()))
      fail("ends[" + std::to_string(i) + "] is " + std::to_string(ends_[i]) +
           "; expected more than the one before, and at most " + std::to_string(tokens_.size()));
    if (mask_[static_cast<size_t>(begin)] != 0)
      fail("document " + std::to_string(i) + " has a mask on its first token");
    if (sources_[i] >= kTextSourceNames.size())
      fail("source[" + std::to_string(i) + "] is " + std::to_string(sources_[i]) +
           "; expected less than " + std::to_string(kTextSourceNames.size()));
    begin = ends_[i];
  }
  if (begin != static_cast<int64_t>(tokens_.size())) fail("tokens go on after the last document");
}

DatasetDocument Dataset::document(size_t index) const {
  VERIFY(index < size());
  const auto begin = static_cast<size_t>(index == 0 ? 0 : ends_[index - 1]);
  const size_t count = static_cast<size_t>(ends_[index]) - begin;
  return {tokens_.subspan(begin, count), mask_.subspan(begin, count),
          static_cast<TextSource>(sources_[index])};
}

void DatasetWriter::add(std::span<const uint16_t> tokens, std::span<const uint8_t> mask,
                        TextSource source) {
  VERIFY(!tokens.empty());
  VERIFY(tokens.size() == mask.size());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  mask_.insert(mask_.end(), mask.begin(), mask.end());
  mask_[mask_.size() - mask.size()] = 0;
  ends_.push_back(static_cast<int64_t>(tokens_.size()));
  sources_.push_back(static_cast<uint8_t>(source));
}

void DatasetWriter::write(const std::string& path) const {
  SafeTensorsWriter writer;  // the widest first: each then begins on a multiple of its size
  add_list(writer, "ends", "I64", ends_);
  add_list(writer, "tokens", "U16", tokens_);
  add_list(writer, "mask", "U8", mask_);
  add_list(writer, "source", "U8", sources_);
  writer.write(path);
}

}  // namespace runtime
