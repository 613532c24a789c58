// Questions about a stretch of a real document that it answers in its own words.
#include <algorithm>
#include <array>
#include <cctype>

#include "runtime/train/tasks/exchange.hpp"
#include "runtime/train/tasks/phrase.hpp"

namespace runtime {

namespace {

struct Section {
  std::string text;
  std::vector<std::string> sentences;  // of its prose
};

bool is_prose(std::string_view paragraph) {
  return paragraph.size() > 60 && paragraph.size() < 1200 && paragraph.ends_with('.') &&
         std::isupper(static_cast<unsigned char>(paragraph.front())) != 0 &&
         paragraph.find('\n') == paragraph.npos && paragraph.find('`') == paragraph.npos;
}

void split_sentences(std::string_view paragraph, std::vector<std::string>& out) {
  size_t begin = 0;
  for (size_t i = 0; i + 2 < paragraph.size(); ++i) {
    const bool is_end = paragraph[i] == '.' && paragraph[i + 1] == ' ' &&
                        std::isupper(static_cast<unsigned char>(paragraph[i + 2])) != 0;
    if (!is_end) continue;
    out.emplace_back(paragraph.substr(begin, i + 1 - begin));
    begin = i + 2;
  }
  out.emplace_back(paragraph.substr(begin));
}

// Paragraphs that follow each other, from somewhere in the document on.
Section some_section(TaskRandom& random, std::string_view text) {
  static constexpr std::array<size_t, 6> kBytes{400, 700, 1100, 1700, 2600, 4000};
  const size_t bytes = random.pick(kBytes);
  if (text.size() > bytes) text.remove_prefix(random.below(text.size() - bytes));
  const size_t start = text.find("\n\n");
  Section section;
  if (start == text.npos) return section;
  text.remove_prefix(start + 2);
  while (!text.empty() && section.text.size() < bytes) {
    const size_t end = std::min(text.find("\n\n"), text.size());
    std::string_view paragraph = text.substr(0, end);
    if (paragraph.ends_with('\n')) paragraph.remove_suffix(1);
    text.remove_prefix(std::min(end + 2, text.size()));
    if (paragraph.size() > 1500) break;
    section.text += (section.text.empty() ? "" : "\n\n") + std::string(paragraph);
    if (is_prose(paragraph)) split_sentences(paragraph, section.sentences);
  }
  std::erase_if(section.sentences, [](const std::string& sentence) {
    return sentence.size() < 30 || sentence.size() > 300;
  });
  return section;
}

// What a sentence of the form "X is ..." defines; empty when it has another form.
std::string defined_by(const std::string& sentence) {
  for (const std::string_view verb :
       {" is a ", " is an ", " is the ", " are the ", " is used to "}) {
    const size_t found = sentence.find(verb);
    if (found == sentence.npos || found > 40) continue;
    const std::string subject = sentence.substr(0, found);
    if (std::count(subject.begin(), subject.end(), ' ') > 3) continue;
    const bool is_pronoun = std::any_of(subject.begin(), subject.end(),
                                        [](char c) { return c == ',' || c == '(' || c == ':'; });
    for (const std::string_view vague :
         {"It", "This", "There", "That", "Which", "If", "Here", "He", "They", "These", "What"}) {
      if (subject == vague || subject.starts_with(std::string(vague) + " ")) return {};
    }
    if (!is_pronoun) return subject;
  }
  return {};
}

std::vector<std::string> words_in(std::string_view sentence) {
  std::vector<std::string> out;
  std::string word;
  for (const char c : std::string(sentence) + " ") {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
    } else {
      if (word.size() >= 6) out.push_back(word);
      word.clear();
    }
  }
  return out;
}

size_t occurrences(std::string_view text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

std::string asked_about(TaskRandom& random, const Section& section, const std::string& asked) {
  const std::string intro = phrase(
      random, "[Read this text.|Here is a text.|Text:|Please read the following.|Use this text.]");
  if (random.percent(25)) return asked + "\n\n" + section.text;
  return (random.percent(60) ? intro + "\n\n" : "") + section.text + "\n\n" + asked;
}

Answer quoted(TaskRandom& random, const std::string& sentence) {
  return {phrase(random,
                 "[The text answers this.|I look for the sentence in the text.|This stands "
                 "in the text.]"),
          sentence, sentence};
}

bool ask_definition(TaskRandom& random, const Section& section, Exchange& out) {
  for (const std::string& sentence : section.sentences) {
    std::string subject = defined_by(sentence);
    if (subject.empty()) continue;
    for (const std::string_view article : {"The ", "A ", "An "}) {
      if (subject.starts_with(article))
        subject[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(subject[0])));
    }
    const bool plural = sentence.find(" are the ") <= subject.size();
    const Slots slots{{"x", subject}, {"is", plural ? "are" : "is"}};
    out = question(asked_about(random, section,
                               phrase(random,
                                      "[What {is} {x}?|What does the text say about {x}?|"
                                      "According to the text, what {is} {x}?]",
                                      slots)),
                   quoted(random, sentence));
    return true;
  }
  return false;
}

// What a document defines, asked without the text: held-out documents nobody can know.
bool ask_from_memory(const TaskWords& words, TaskRandom& random, const Section& section,
                     Exchange& out) {
  for (const std::string& sentence : section.sentences) {
    const std::string subject = defined_by(sentence);
    const bool has_article =
        subject.starts_with("The ") || subject.starts_with("A ") || subject.starts_with("An ");
    if (subject.empty() || has_article || sentence.find(" are the ") != sentence.npos) continue;
    out =
        question(phrase(random,
                        "[What is {x}?|Tell me about {x}.|What do you know about {x}?|Explain "
                        "{x}.]",
                        {{"x", subject}}),
                 {phrase(random, "[I remember {x} from the documentation.|I try to remember {x}.]",
                         {{"x", subject}}),
                  sentence, words.held_out() ? "" : sentence});
    return true;
  }
  return false;
}

Exchange ask_mention(TaskRandom& random, const Section& section) {
  const std::string& sentence = random.pick(section.sentences);
  auto candidates = words_in(sentence);
  std::erase_if(candidates,
                [&](const std::string& word) { return occurrences(section.text, word) != 1; });
  if (candidates.empty()) {
    const std::string& first = section.sentences.front();
    return question(asked_about(random, section,
                                phrase(random,
                                       "[What is the first full sentence of prose in the "
                                       "text?|Quote the first sentence of prose.]")),
                    quoted(random, first));
  }
  const Slots slots{{"x", random.pick(candidates)}};
  return question(
      asked_about(random, section,
                  phrase(random,
                         "[Which sentence mentions \"{x}\"?|Quote the sentence with the word "
                         "{x}.|What does the text say about {x}?|Find the sentence about "
                         "{x}.]",
                         slots)),
      quoted(random, sentence));
}

Exchange ask_rest(TaskRandom& random, const Section& section) {
  const std::string& sentence = random.pick(section.sentences);
  const size_t middle = sentence.find(' ', sentence.size() * 2 / 5);
  if (middle == sentence.npos) return ask_mention(random, section);
  const std::string rest = sentence.substr(middle + 1);
  return question(
      asked_about(random, section,
                  phrase(random,
                         "[How does this sentence of the text go on: \"{s} ...\"?|Complete "
                         "the sentence from the text: {s} ...]",
                         {{"s", sentence.substr(0, middle)}})),
      {sentence, rest, rest});
}

Exchange ask_whether(TaskWords& words, const Section& section) {
  TaskRandom& random = words.random();
  const auto present = words_in(section.text);
  const bool yes = !present.empty() && random.percent(50);
  std::string word = yes ? random.pick(present) : words.one(WordList::kTopics);
  while (!yes && section.text.find(word) != section.text.npos) word = words.made_up(3);
  return question(asked_about(random, section,
                              phrase(random,
                                     "[Does the text contain the word {x}?|Is {x} mentioned "
                                     "in the text?|Does the word \"{x}\" come in the text?]",
                                     {{"x", word}})),
                  {phrase(random,
                          yes ? "[I find {x} in the text.|{x} stands in the text.]"
                              : "[I do not find {x} in the text.|{x} is not there.]",
                          {{"x", word}}),
                   phrase(random,
                          yes ? "[Yes.|Yes, it does.|Yes, {x} is there.]"
                              : "[No.|No, it does not.|No, {x} is not there.]",
                          {{"x", word}}),
                   yes ? "Yes" : "No"});
}

}  // namespace

Exchange document_exchange(TaskWords& words, const LongText& text) {
  TaskRandom& random = words.random();
  for (int attempt = 0; attempt < 20 && !text.documents.empty(); ++attempt) {
    const Section section = some_section(random, random.pick(text.documents).text);
    if (section.sentences.empty() || section.text.size() > 6000) continue;
    Exchange out;
    const int kind = random.between(0, 9);
    if (kind == 0 && ask_from_memory(words, random, section, out)) return out;
    if (kind < 5 && ask_definition(random, section, out)) return out;
    if (kind < 7) return ask_mention(random, section);
    return kind < 9 ? ask_rest(random, section) : ask_whether(words, section);
  }
  return lookup_exchange(words, text);
}

}  // namespace runtime
