// Token ids that never change once made: copies share them, so the choices of one prompt and the
// events that name it hold it once.
#pragma once

#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/request.hpp"

namespace runtime {

class SharedTokens {
 public:
  SharedTokens() : SharedTokens(std::vector<TokenId>{}) {}
  SharedTokens(std::vector<TokenId> ids)  // implicit: any list of ids can become shared
      : ids_(std::make_shared<const std::vector<TokenId>>(std::move(ids))) {}
  SharedTokens(std::initializer_list<TokenId> ids) : SharedTokens(std::vector<TokenId>(ids)) {}

  const std::vector<TokenId>& ids() const { return *ids_; }
  operator const std::vector<TokenId>&() const { return *ids_; }
  size_t size() const { return ids_->size(); }
  bool empty() const { return ids_->empty(); }
  TokenId operator[](size_t index) const { return (*ids_)[index]; }
  auto begin() const { return ids_->begin(); }
  auto end() const { return ids_->end(); }
  bool operator==(const SharedTokens& other) const { return *ids_ == *other.ids_; }

 private:
  std::shared_ptr<const std::vector<TokenId>> ids_;
};

}  // namespace runtime
