// Copying from the prompt: lists that are written again, and tables that are asked about many
// times, so that most of what the assistant writes teaches to look back.
#include <algorithm>
#include <array>

#include "runtime/train/tasks/exchange.hpp"
#include "runtime/train/tasks/phrase.hpp"

namespace runtime {

namespace {

struct Table {
  std::vector<std::string> keys, values;
  std::string text;  // a line for each key
};

Table make_table(TaskWords& words) {
  TaskRandom& random = words.random();
  static constexpr std::array<std::string_view, 5> kBetween{": ", " = ", " -> ", " has the code ",
                                                            " is "};
  const std::string_view between = random.pick(kBetween);
  const bool has_ends = random.percent(30);
  const auto count = static_cast<size_t>(random.between(3, 24));
  Table table;
  while (table.keys.size() < count) {
    std::string key = words.made_up(random.between(1, 3));
    if (std::find(table.keys.begin(), table.keys.end(), key) != table.keys.end()) continue;
    const int kind = random.between(0, 3);
    std::string value = kind == 0   ? words.made_up(random.between(1, 3))
                        : kind == 1 ? std::to_string(random.between(10, 9999))
                        : kind == 2 ? words.code()
                                    : words.one(WordList::kThings);
    table.text += key + std::string(between) + value + (has_ends ? ".\n" : "\n");
    table.keys.push_back(std::move(key));
    table.values.push_back(std::move(value));
  }
  return table;
}

Exchange asked_table(TaskWords& words) {
  TaskRandom& random = words.random();
  const Table table = make_table(words);
  std::vector<size_t> order(table.keys.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  random.shuffle(order);
  order.resize(std::min<size_t>(order.size(), static_cast<size_t>(random.between(2, 8))));
  Exchange out;
  for (const size_t i : order) {
    const std::string asked =
        phrase(random,
               "[What belongs to {k}?|Which value stands beside {k}?|Look up {k}.|What is the "
               "value of {k}?|{k}?|And {k}?]",
               {{"k", table.keys[i]}});
    Exchange one = question(out.messages.empty() ? table.text + "\n" + asked : asked,
                            {table.keys[i] + ": " + table.values[i], table.values[i],
                             table.values[i]});
    for (ChatMessage& message : one.messages) out.messages.push_back(std::move(message));
    out.expected = std::move(one.expected);
  }
  return out;
}

}  // namespace

// A list to be written again, whole or from a word on.
Exchange list_exchange(TaskWords& words) {
  TaskRandom& random = words.random();
  std::vector<std::string> items;
  const int count = random.between(4, random.percent(30) ? 60 : 20);
  while (static_cast<int>(items.size()) < count) {
    std::string item = words.made_up(random.between(1, 3));
    if (std::find(items.begin(), items.end(), item) == items.end()) items.push_back(item);
  }
  std::string list;
  for (const std::string& item : items) list += (list.empty() ? "" : " ") + item;
  if (random.percent(50)) {
    return question(phrase(random,
                           "[Repeat this list: |Copy these words: |Write the same words "
                           "again: |Echo: ]") +
                        list,
                    {"I copy the words one by one.", list, list});
  }
  const size_t place = random.below(items.size() - 1);
  return question(list + "\n" +
                      phrase(random,
                             "[Which word comes after {w}?|What follows {w} in this list?|In "
                             "the list, what comes right after {w}?]",
                             {{"w", items[place]}}),
                  {"... " + items[place] + " " + items[place + 1] + " ...", items[place + 1],
                   items[place + 1]});
}

Exchange copy_exchange(TaskWords& words) {
  return words.random().percent(50) ? asked_table(words) : list_exchange(words);
}

}  // namespace runtime
