// The words that generated examples speak of. Those of the held-out examples never come in the
// others: every sixth of a list, and every sixth made-up name by its hash.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/train/tasks/task_random.hpp"

namespace runtime {

enum class WordList {
  kPeople,
  kCities,
  kAnimals,
  kFoods,
  kColours,
  kThings,
  kPlaces,
  kJobs,
  kAdjectives,
  kVerbs,
  kFields,
  kTopics,
  kLanguages,
  kWeekdays,
  kMonths
};

class TaskWords {
 public:
  TaskWords(TaskRandom& random, bool held_out) : random_(random), held_out_(held_out) {}

  std::string one(WordList list);
  std::vector<std::string> some(WordList list, size_t count);  // all different
  std::string made_up(int syllables);                          // "torvani"
  std::string identifier();  // of a tool or a field: "scan_torvani", "pageLimit", "depth"
  std::string title();       // two to four words: "quarterly budget review"
  std::string code();        // "KX-4821"

  TaskRandom& random() { return random_; }
  bool held_out() const { return held_out_; }

 private:
  TaskRandom& random_;
  bool held_out_;
};

std::string capitalised(std::string word);
// "a, b and c"
std::string enumeration(const std::vector<std::string>& items, std::string_view last = " and ");

}  // namespace runtime
