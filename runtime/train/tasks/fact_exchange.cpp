// Short questions about facts that the question itself states: who has what, where things are,
// what comes before what.
#include <array>

#include "runtime/train/tasks/exchange.hpp"
#include "runtime/train/tasks/phrase.hpp"

namespace runtime {

namespace {

// A fact about a {subject} whose {value} is asked for.
struct Relation {
  WordList subject, value;
  std::string_view fact, asked, answer;
};

constexpr std::array<Relation, 14> kRelations{{
    {WordList::kPeople, WordList::kCities, "{subject} [lives in|comes from|was born in] {value}.",
     "[Where does {subject} come from?|Which city belongs to {subject}?|Which city is {subject} "
     "from?]",
     "[{value}.|{subject}'s city is {value}.|It is {value}.]"},
    {WordList::kPeople, WordList::kJobs, "{subject} [is a|works as a] {value}.",
     "[What is {subject}'s job?|What does {subject} do for a living?|What does {subject} work as?]",
     "[{subject} is a {value}.|{subject} works as a {value}.]"},
    {WordList::kPeople, WordList::kAnimals, "{subject} [has a|owns a|keeps a] {value}.",
     "[Which animal does {subject} have?|What pet does {subject} have?|What animal belongs to "
     "{subject}?]",
     "[{subject} has a {value}.|A {value}.|It is a {value}.]"},
    {WordList::kPeople, WordList::kFoods, "{subject} [likes|loves|prefers|always orders] {value}.",
     "[What does {subject} like?|Which food does {subject} like?|What would {subject} order?]",
     "[{subject} likes {value}.|{value}.]"},
    {WordList::kThings, WordList::kColours, "The {subject} is {value}.",
     "[What colour is the {subject}?|Which colour does the {subject} have?]",
     "[The {subject} is {value}.|It is {value}.|{value}.]"},
    {WordList::kThings, WordList::kPlaces, "The {subject} [is|lies|stands] in the {value}.",
     "[Where is the {subject}?|Where can I find the {subject}?|In which place is the {subject}?]",
     "[The {subject} is in the {value}.|In the {value}.|You can find it in the {value}.]"},
    {WordList::kPeople, WordList::kPlaces, "{subject} [is in|went to|waits in] the {value}.",
     "[Where is {subject}?|Where can I find {subject}?]",
     "[{subject} is in the {value}.|In the {value}.]"},
    {WordList::kPeople, WordList::kThings, "{subject} [bought a|carries a|holds a|lost a] {value}.",
     "[What is the thing that belongs to {subject}?|Which thing is {subject}'s?]",
     "[{subject}'s thing is the {value}.|The {value}.|It is the {value}.]"},
    {WordList::kPeople, WordList::kLanguages, "{subject} [speaks|learns|teaches] {value}.",
     "[Which language goes with {subject}?|What language does {subject} know?]",
     "[{value}.|It is {value}.|{subject} knows {value}.]"},
    {WordList::kPeople, WordList::kTopics,
     "{subject} [is interested in|reads about|gives a talk on] {value}.",
     "[What is {subject} interested in?|What is {subject}'s topic?]",
     "[{subject}'s topic is {value}.|It is {value}.]"},
    {WordList::kThings, WordList::kPeople, "The {subject} belongs to {value}.",
     "[Whose {subject} is it?|Who owns the {subject}?|To whom does the {subject} belong?]",
     "[The {subject} belongs to {value}.|{value}.|It is {value}'s.]"},
    {WordList::kCities, WordList::kMonths,
     "The [fair|meeting|festival] in {subject} is in {value}.",
     "[In which month is the one in {subject}?|When is it in {subject}?]",
     "[It is in {value}.|In {value}.|The one in {subject} is in {value}.]"},
    {WordList::kPeople, WordList::kWeekdays, "{subject} [comes|visits us|has time] on {value}.",
     "[On which day does {subject} come?|When does {subject} have time?]",
     "[On {value}.|{subject} comes on {value}.]"},
    {WordList::kAnimals, WordList::kPlaces, "The {subject} [sleeps|hides|sits] in the {value}.",
     "[Where is the {subject}?|Where does the {subject} sit?]",
     "[The {subject} is in the {value}.|In the {value}.]"},
}};

// Several facts of one relation in any order, and a question about one of them.
Exchange one_of_several(TaskWords& words) {
  TaskRandom& random = words.random();
  const Relation& relation = random.pick(kRelations);
  const auto count = static_cast<size_t>(random.between(1, 5));
  const auto subjects = words.some(relation.subject, count);
  const auto values = words.some(relation.value, count);
  const size_t asked = random.below(count);
  std::string facts, stated;  // all of them; the one that answers
  for (size_t i = 0; i < count; ++i) {
    const std::string fact =
        phrase(random, relation.fact, {{"subject", subjects[i]}, {"value", values[i]}});
    facts += (i == 0 ? "" : " ") + fact;
    if (i == asked) stated = fact;
  }
  const Slots slots{{"subject", subjects[asked]}, {"value", values[asked]}};
  const std::string wanted = phrase(random, relation.asked, slots);
  const bool asks_unknown = count > 1 && random.percent(8);
  if (asks_unknown) {
    std::string stranger = words.one(relation.subject);
    while (facts.find(stranger) != facts.npos) stranger = words.made_up(2);
    return question(facts + " " + phrase(random, relation.asked, {{"subject", stranger}}),
                    {"Nothing is said about " + stranger + ".",
                     phrase(random,
                            "[That is not said.|The text does not say that.|I do not know: "
                            "it is not said.]"),
                     "not"});
  }
  const std::string reasoning =
      phrase(random, "[The text says: |It says: |I look for {subject}: ]", slots) + stated;
  const std::string response = phrase(random, relation.answer, slots);
  const std::string answered = capitalised(response);
  const std::string& value = values[asked];
  return question(
      random.percent(50) ? facts + " " + wanted : facts + "\n\n" + wanted,
      {reasoning, answered, answered.starts_with(capitalised(value)) ? capitalised(value) : value});
}

// "A is older than B, and B is older than C. Who is oldest?"
Exchange ordering(TaskWords& words) {
  TaskRandom& random = words.random();
  struct Scale {
    std::string_view than, most, least;
  };
  static constexpr std::array<Scale, 5> kScales{{{"older", "oldest", "youngest"},
                                                 {"taller", "tallest", "shortest"},
                                                 {"faster", "fastest", "slowest"},
                                                 {"richer", "richest", "poorest"},
                                                 {"stronger", "strongest", "weakest"}}};
  const Scale& scale = random.pick(kScales);
  const auto people = words.some(WordList::kPeople, 3);
  std::vector<std::string> facts;
  for (size_t i = 0; i + 1 < people.size(); ++i)
    facts.push_back(people[i] + " is " + std::string(scale.than) + " than " + people[i + 1] + ".");
  random.shuffle(facts);
  const bool most = random.percent(50);
  const std::string word(most ? scale.most : scale.least), who = most ? people[0] : people[2];
  return question(
      facts[0] + " " + facts[1] + phrase(random, " [Who is the |Who of them is the ]") + word + "?",
      {"The order is " + people[0] + ", " + people[1] + ", " + people[2] + ", from " +
           std::string(scale.most) + " to " + std::string(scale.least) + ".",
       phrase(random, "[{who} is the {word}.|The {word} is {who}.|{who}.]",
              {{"who", who}, {"word", word}}),
       who});
}

// A record of fields, in one of three spellings, and a question about one.
Exchange record(TaskWords& words) {
  TaskRandom& random = words.random();
  const auto fields = words.some(WordList::kFields, static_cast<size_t>(random.between(2, 6)));
  std::vector<std::string> values;
  for (size_t i = 0; i < fields.size(); ++i) {
    const int kind = random.between(0, 3);
    values.push_back(kind == 0   ? words.code()
                     : kind == 1 ? words.made_up(3)
                     : kind == 2 ? words.one(WordList::kThings)
                                 : std::to_string(random.between(1, 9999)));
  }
  const int form = random.between(0, 2);
  std::string text;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (form == 0) text += fields[i] + ": " + values[i] + "\n";
    if (form == 1) text += "The " + fields[i] + " is " + values[i] + ". ";
    if (form == 2) text += (i == 0 ? "{\"" : ", \"") + fields[i] + "\": \"" + values[i] + "\"";
  }
  if (form == 2) text += "}\n";
  const size_t asked = random.below(fields.size());
  const Slots slots{{"field", fields[asked]}, {"value", values[asked]}};
  return question(
      text + phrase(random,
                    "[What is the {field}?|Which {field} is given?|Tell me the {field}.|Give "
                    "me the value of {field}.]",
                    slots),
      {phrase(random, "[The {field} is {value}.|{field} has the value {value}.]", slots),
       phrase(random, "[The {field} is {value}.|It is {value}.|{value}]", slots), values[asked]});
}

}  // namespace

Exchange fact_exchange(TaskWords& words) {
  const int kind = words.random().between(0, 11);
  if (kind < 4) return one_of_several(words);
  if (kind < 8) return inference_exchange(words);
  return kind < 10 ? record(words) : ordering(words);
}

}  // namespace runtime
