// Sentences with choices and slots: "[Hello|Hi], {name}[!|.]" becomes one of four greetings of a
// name. Choices nest; the text of a slot is taken as it is.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "runtime/train/tasks/task_random.hpp"

namespace runtime {

using Slots = std::map<std::string, std::string, std::less<>>;

// Every bracket of `pattern` has its partner, and every slot a text.
std::string phrase(TaskRandom& random, std::string_view pattern, const Slots& slots = {});

}  // namespace runtime
