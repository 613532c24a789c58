// Questions whose answer is stated, but not in the words of the question: who has it, whether it is
// so, two facts put together, and facts written as JSON.
#include <array>
#include <boost/json/object.hpp>

#include "runtime/canonical_json.hpp"
#include "runtime/train/tasks/exchange.hpp"
#include "runtime/train/tasks/phrase.hpp"

namespace runtime {

namespace {

struct Habit {
  WordList value;
  std::string_view fact, who, whether, negation;
};

constexpr std::array<Habit, 8> kHabits{{
    {WordList::kCities, "{who} [lives in|moved to] {value}.",
     "[Who is in {value}?|Who has a home in "
     "{value}?]",
     "Is {who} in {value}?", "{who} is in {value}"},
    {WordList::kJobs, "{who} [is a|works as a] {value}.",
     "[Who is the {value}?|Who works as a "
     "{value}?]",
     "Is {who} a {value}?", "{who} is a {value}"},
    {WordList::kFoods, "{who} [eats|wants|likes] {value}.",
     "[Who likes {value}?|Who wants {value}?]", "Does {who} like {value}?", "{who} likes {value}"},
    {WordList::kAnimals, "{who} [has a|owns a] {value}.",
     "[Who has a {value}?|Whose animal is the "
     "{value}?]",
     "Does {who} have a {value}?", "{who} has a {value}"},
    {WordList::kThings, "{who} [bought a|carries a|found a] {value}.",
     "[Who has the {value}?|Who owns "
     "a {value}?]",
     "Does {who} have a {value}?", "{who} has a {value}"},
    {WordList::kPlaces, "{who} [is|works|waits] in the {value}.",
     "[Who is in the {value}?|Whom do I "
     "find in the {value}?]",
     "Is {who} in the {value}?", "{who} is in the {value}"},
    {WordList::kTopics, "{who} [likes|studies|reads about] {value}.",
     "[Who likes {value}?|Who knows "
     "about {value}?]",
     "Does {who} like {value}?", "{who} likes {value}"},
    {WordList::kLanguages, "{who} [speaks|learns] {value}.",
     "[Who speaks {value}?|Who knows "
     "{value}?]",
     "Does {who} speak {value}?", "{who} speaks {value}"},
}};

struct Facts {
  std::vector<std::string> people, values, sentences;
  std::string text;
};

Facts some_facts(TaskWords& words, const Habit& habit, size_t count) {
  Facts facts{words.some(WordList::kPeople, count), words.some(habit.value, count), {}, {}};
  for (size_t i = 0; i < count; ++i) {
    facts.sentences.push_back(
        phrase(words.random(), habit.fact, {{"who", facts.people[i]}, {"value", facts.values[i]}}));
    facts.text += facts.sentences.back() + " ";
  }
  return facts;
}

Exchange who_has(TaskWords& words) {
  TaskRandom& random = words.random();
  const Habit& habit = random.pick(kHabits);
  const Facts facts = some_facts(words, habit, static_cast<size_t>(random.between(2, 6)));
  const size_t asked = random.below(facts.people.size());
  const std::string& who = facts.people[asked];
  const Slots slots{{"who", who}, {"value", facts.values[asked]}};
  return question(facts.text + phrase(random, habit.who, slots),
                  {"The text says: " + facts.sentences[asked],
                   phrase(random, "[{who}.|It is {who}.|That is {who}.]", slots), who});
}

Exchange whether(TaskWords& words) {
  TaskRandom& random = words.random();
  const Habit& habit = random.pick(kHabits);
  const Facts facts = some_facts(words, habit, static_cast<size_t>(random.between(2, 5)));
  const size_t asked = random.below(facts.people.size());
  const bool yes = random.percent(50);
  const size_t claimed = yes ? asked : (asked + 1) % facts.people.size();
  const Slots claim{{"who", facts.people[asked]}, {"value", facts.values[claimed]}};
  const std::string truth = phrase(random, habit.negation,
                                   {{"who", facts.people[asked]}, {"value", facts.values[asked]}});
  return question(facts.text + phrase(random, habit.whether, claim),
                  {"The text says: " + facts.sentences[asked],
                   phrase(random, yes ? "[Yes.|Yes, {t}.]" : "[No, {t}.|No. {t}.]", {{"t", truth}}),
                   yes ? "Yes" : "No"});
}

// "The key is in the bag. The bag is in the cellar. Where is the key?"
Exchange two_steps(TaskWords& words) {
  TaskRandom& random = words.random();
  const auto things = words.some(WordList::kThings, 4);
  const auto places = words.some(WordList::kPlaces, 2);
  const std::string who = words.one(WordList::kPeople);
  const bool carried = random.percent(50);
  std::vector<std::string> facts;
  for (size_t i = 0; i < 2; ++i) {
    const Slots slots{{"thing", things[i]}, {"in", things[i + 2]}, {"place", places[i]}};
    facts.push_back(phrase(random, "The {thing} [is in|lies in|was put into] the {in}.", slots));
    facts.push_back(phrase(random, "The {in} [is|stands] in the {place}.", slots));
  }
  Slots asked{{"thing", things[0]}, {"in", things[2]}, {"place", places[0]}};
  if (carried) {
    facts[0] = phrase(random, "{who} [has|carries|took] the {thing}.",
                      {{"who", who}, {"thing", things[0]}});
    facts[1] = phrase(random, "{who} [is|went to and is now] in the {place}.",
                      {{"who", who}, {"place", places[0]}});
    asked["in"] = who;
  }
  const std::string first = facts[0], second = facts[1];
  random.shuffle(facts);
  return question(
      facts[0] + " " + facts[1] + " " + facts[2] + " " + facts[3] +
          phrase(random,
                 " [In which place is the {thing}?|In which room or place is the {thing}?|"
                 "Where would I go to get the {thing}?]",
                 asked),
      {first + " " + second +
           phrase(random, " [So it is in the {place}.|Hence the {place}.]", asked),
       phrase(random, "[The {thing} is in the {place}.|In the {place}.]", asked), places[0]});
}

Exchange as_json(TaskWords& words) {
  TaskRandom& random = words.random();
  const std::string who = words.one(WordList::kPeople), city = words.one(WordList::kCities),
                    job = words.one(WordList::kJobs), food = words.one(WordList::kFoods);
  const int age = random.between(18, 90);
  boost::json::object object;
  object["name"] = who;
  std::vector<std::string> keys{"age", "city", "job", "food"};
  random.shuffle(keys);
  keys.resize(static_cast<size_t>(random.between(1, 3)));
  std::string asked = "name";
  for (const std::string& key : keys) {
    asked += ", " + key;
    if (key == "age") object[key] = age;
    if (key == "city") object[key] = city;
    if (key == "job") object[key] = job;
    if (key == "food") object[key] = food;
  }
  const std::string out = write_json(to_json_node(object), kSpacedJson);
  return question(
      phrase(random,
             "[{who} is {age} years old, lives in {city}, works as a {job} and likes {food}.|{who} "
             "from "
             "{city} is a {job}, {age} years old, and eats {food}.|This is {who}, a {job} of {age} "
             "years from {city} who likes {food}.] [Give {keys} as JSON.|Write {keys} as a JSON "
             "object.|Answer with JSON only: {keys}.]",
             {{"who", who},
              {"age", std::to_string(age)},
              {"city", city},
              {"job", job},
              {"food", food},
              {"keys", asked}}),
      {phrase(random, "[The keys are {keys}.|I take {keys} from the text.]", {{"keys", asked}}),
       out, out});
}

}  // namespace

Exchange inference_exchange(TaskWords& words) {
  static constexpr std::array<Exchange (*)(TaskWords&), 6> kTasks{who_has,   who_has,   whether,
                                                                  two_steps, two_steps, as_json};
  return words.random().pick(kTasks)(words);
}

}  // namespace runtime
