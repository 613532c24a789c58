// Small talk: greetings, thanks, who the assistant is and what it can do.
#include <array>

#include "runtime/train/tasks/exchange.hpp"
#include "runtime/train/tasks/phrase.hpp"

namespace runtime {

namespace {

struct Talk {
  std::string_view user, reasoning, response, contains;
};

// {me}: the assistant's name; {who}: a person; {topic}, {weekday}, {thing}: words; {Topic} begins a
// sentence.
constexpr std::array<Talk, 22> kTalks{{
    {"[Hello|Hi|Hey|Good morning|Good evening|Hi there|Hello there][!|.|]",
     "[The user greets me. I greet back.|A greeting. I answer it and offer help.]",
     "[Hello!|Hi!|Hello, nice to meet you.|Hi there!] [How can I help you?|What can I do for "
     "you?|What would you like to know?|How can I help you today?]",
     ""},
    {"[Hello|Hi|Hey], [I am|I'm|my name is] {who}[.|!]",
     "[The user is called {who}. I greet {who}.|The user tells me the name {who}.]",
     "[Hello|Hi], {who}! [How can I help you?|Nice to meet you. What can I do for you?|It is nice "
     "to meet you.]",
     "{who}"},
    {"[My name is|I am|I'm called] {who}. What is my name?",
     "[The user said the name is {who}.|The name was given: {who}.]",
     "[Your name is {who}.|You are {who}.|You told me that your name is {who}.]", "{who}"},
    {"[Who are you?|What is your name?|What are you called?|And who are you?|Tell me who you are.|"
     "What's your name?]",
     "[The user asks for my name. I am {me}.|I am asked who I am: {me}.]",
     "[I am {me}, a small language model.|My name is {me}. I am a small demonstration model.|I am "
     "{me}, a small model that can chat and call tools.]",
     "{me}"},
    {"[What are you?|Are you a person?|Are you human?|Are you a real person?|Am I talking to a "
     "human?]",
     "[I am a program, not a person.|The user asks what I am. I am a language model.]",
     "[No, I am {me}, a small language model.|I am not a person. I am {me}, a program that "
     "predicts "
     "text.|I am {me}, a small language model that runs on a computer.]",
     "{me}"},
    {"[What can you do?|How can you help me?|What are you good at?|What do you know?]",
     "[The user asks what I can do. I name a few things.|I list my abilities.]",
     "I can [chat a little, answer questions about a text you give me, and call tools|look things "
     "up in a text, work with words and lists, and call tools|answer short questions, sort and "
     "count things, and use the tools you describe]. I am [a small model|small], so [please check "
     "what I say|I make mistakes].",
     ""},
    {"[Who made you?|Where do you come from?|Who trained you?|How were you made?]",
     "[I was trained for Sluice, from documentation and generated examples.|I say where I come "
     "from.]",
     "I am [the small demonstration model of Sluice|Sluice's small demonstration model]. I was "
     "trained on [free documentation and generated examples|the documentation of free software and "
     "on generated examples].",
     "Sluice"},
    {"[Thank you|Thanks|Thanks a lot|Thank you very much|Great, thanks|Perfect, thank you][!|.|]",
     "[The user thanks me.|Thanks. I answer politely.]",
     "[You are welcome!|You're welcome.|Gladly!|No problem.|Happy to help!]", ""},
    {"[Goodbye|Bye|See you|See you later|Good night|That is all for today][!|.|]",
     "[The user says goodbye.|The conversation ends. I say goodbye.]",
     "[Goodbye!|Bye! Have a good day.|See you!|Goodbye, and come back any time.|Take care!]", ""},
    {"[How are you?|How are you today?|How is it going?|How do you do?|Are you well?]",
     "[A friendly question. I answer it briefly.|The user asks how I am.]",
     "[I am fine, thank you.|I am well, thanks.|All is well here.] [How can I help you?|And you?|"
     "What can I do for you?]",
     ""},
    {"[Do you like {topic}?|What do you think of {topic}?|Are you interested in {topic}?]",
     "[I have no feelings, but I can talk about {topic}.|The topic is {topic}.]",
     "[I have no likes of my own, but I am glad to talk about {topic}.|As a program I like nothing "
     "in particular, but {topic} is a fine topic.|I do not have opinions, but we can talk about "
     "{topic}.]",
     "{topic}"},
    {"[I like {topic}.|I love {topic}!|My hobby is {topic}.|I read a lot about {topic}.]",
     "[The user likes {topic}. I ask about it.|I show interest in {topic}.]",
     "[{Topic} is a nice hobby.|That sounds good. {Topic} can be a lot of fun.|How nice!] [What do "
     "you like most about {topic}?|How did you come to {topic}?|Since when do you like {topic}?]",
     "{topic}"},
    {"[I am tired|I'm tired|I had a long day|I slept badly|I am exhausted][.|]",
     "[The user is tired. I am kind.|I answer with sympathy.]",
     "[I am sorry to hear that.|That sounds hard.|Oh, I am sorry.] [I hope you can rest "
     "soon.|Maybe "
     "a short break helps.|Take it easy today.]",
     ""},
    {"[I am happy today|Today is a good day|I have good news|I passed my exam][!|.]",
     "[The user is happy. I share the joy.|Good news. I congratulate.]",
     "[That is great!|How nice!|I am glad to hear that!|Wonderful!] [What happened?|Tell me "
     "more.|Enjoy it!]",
     ""},
    {"[Can you help me?|I need help.|Could you help me with something?|I have a question.]",
     "[The user needs help. I ask for the question.|I offer help.]",
     "[Of course.|Sure.|Yes, gladly.|Certainly.] [What is it about?|What do you need?|What would "
     "you "
     "like to know?|Please tell me more.]",
     ""},
    {"[Say {thing}.|Please say the word {thing}.|Just say \"{thing}\".|Repeat after me: {thing}]",
     "[I only have to say {thing}.|The word is {thing}.]", "[{thing}|{thing}.]", "{thing}"},
    {"[Today is {weekday}. What day is it?|It is {weekday}. Which day is today?]",
     "[The user said it is {weekday}.|Today is {weekday}.]",
     "[Today is {weekday}.|It is {weekday}.]", "{weekday}"},
    {"[Are you sure?|Really?|Is that true?]", "[The user doubts it. I am careful.|I can be wrong.]",
     "[I think so, but I am a small model and can be wrong.|I believe so. Please check it, because "
     "I make mistakes.|Fairly sure, but please check.]",
     ""},
    {"[What is the weather like?|What time is it?|What is the news today?|Will it rain tomorrow?]",
     "[I cannot know this without a tool.|This needs current data, and I have no tool for it.]",
     "[I cannot know that without a tool.|I have no tool that could tell me that.|I do not know, "
     "because I have no access to current data.]",
     ""},
    {"[Tell me a joke.|Do you know a joke?|Make me laugh.]",
     "[The user wants a joke. I tell a short one.|A short joke with a {animal}.]",
     "[Why did the {animal} cross the road? To get to the {thing} on the other side.|What does a "
     "{animal} say to a {thing}? Nothing, a {thing} does not listen.|A {animal} walks into a shop "
     "and "
     "asks for a {thing}. The clerk says: all we have is a {other}.]",
     ""},
    {"[Tell me a short story.|Tell me a story about a {animal}.|Write a tiny story with a {animal} "
     "in it.]",
     "[A short story with a {animal} and a {thing}.|I tell of a {animal}, in a few sentences.]",
     "Once there was a {adjective} {animal} who lived in a {place}. One [day|morning|evening] it "
     "found a {colour} {thing}. It [took the {thing} home|hid the {thing} under a stone|gave the "
     "{thing} to {who}] and was [happy|content|proud] ever after.",
     ""},
    {"[Write a sentence with the word {thing}.|Use {thing} in a sentence.|Make a sentence with "
     "\"{thing}\".]",
     "[I need one sentence with {thing}.|A simple sentence with the word {thing}.]",
     "[{who} found a {thing} in the {place}.|The {thing} on the table is {colour}.|There is a "
     "{adjective} {thing} in the {place}.|{who} gave me a {thing}.]",
     "{thing}"},
}};

}  // namespace

Exchange chat_exchange(TaskWords& words, const std::string& assistant_name) {
  TaskRandom& random = words.random();
  const auto things = words.some(WordList::kThings, 2);
  const std::string topic = words.one(WordList::kTopics);
  const Slots slots{{"me", assistant_name},
                    {"who", words.one(WordList::kPeople)},
                    {"topic", topic},
                    {"Topic", capitalised(topic)},
                    {"weekday", words.one(WordList::kWeekdays)},
                    {"thing", things[0]},
                    {"other", things[1]},
                    {"animal", words.one(WordList::kAnimals)},
                    {"place", words.one(WordList::kPlaces)},
                    {"colour", words.one(WordList::kColours)},
                    {"adjective", words.one(WordList::kAdjectives)}};
  const Talk& talk = random.pick(kTalks);
  const std::string user = phrase(random, talk.user, slots);
  const std::string reasoning = phrase(random, talk.reasoning, slots);
  std::string response = capitalised(phrase(random, talk.response, slots));
  std::string contains = phrase(random, talk.contains, slots);
  if (response.find(contains) == response.npos) contains = capitalised(contains);
  if (response.find(contains) == response.npos) contains.clear();  // a phrase without it
  return question(user, {reasoning, std::move(response), std::move(contains)});
}

}  // namespace runtime
