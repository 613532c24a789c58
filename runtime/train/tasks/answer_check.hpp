// Marks a model's answer to an example.
#pragma once

#include <memory>
#include <span>

#include "runtime/tokenizer.hpp"
#include "runtime/train/tasks/example.hpp"

namespace runtime {

struct AnswerMarks {
  bool is_well_formed = false;  // complete XTML: rendering what was parsed gives the same text
  bool is_right = false;        // well formed, and as the example expects
};

// ids: what the model produced after the prompt, the end of the message included.
AnswerMarks check_answer(const std::shared_ptr<const Tokenizer>& tokenizer, const Example& example,
                         std::span<const TokenId> ids);

}  // namespace runtime
