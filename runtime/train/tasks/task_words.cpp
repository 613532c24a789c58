#include "runtime/train/tasks/task_words.hpp"

#include <algorithm>
#include <array>

namespace runtime {

namespace {

constexpr size_t kHeldOutOneIn = 6;

// In the order of WordList.
constexpr std::array<std::string_view, 15> kLists{
    "Anna Ben Clara David Elena Felix Greta Hugo Ines Jonas Kira Leo Maria Nils Olga Paul Quinn "
    "Rosa Simon Tara Umar Vera Walter Xenia Yusuf Zoe Adam Bella Carl Diana Emil Fatima George "
    "Hanna Ivan Julia Karim Laura Marco Nora Oscar Petra Ravi Sara Tom Ursula Victor Wendy Amir "
    "Bruno Cora Daniel Eva Frank Gina Henry Iris Jack Kate Liam Mona Noah Olivia Peter Ruth Sven "
    "Tina Uli Vito Willa Yara Zeno Alice Boris Celia Dora Erik Flora Gustav Helen Igor Jana Kurt "
    "Lena Max Nina Otto Pia Rolf Sofia Theo Una Viola Wanda Yann Zara",
    "Paris London Berlin Madrid Rome Vienna Oslo Lisbon Dublin Athens Prague Warsaw Helsinki Cairo "
    "Tokyo Osaka Delhi Mumbai Lima Quito Boston Chicago Denver Seattle Austin Toronto Montreal "
    "Sydney Perth Auckland Nairobi Lagos Accra Tunis Zurich Geneva Lyon Nice Milan Turin Naples "
    "Porto Seville Munich Hamburg Cologne Leipzig Krakow Riga Vilnius Tallinn Bergen Malmo Ghent "
    "Bruges Basel Graz Linz Split Zagreb Sofia Varna Izmir Ankara Haifa Amman Doha Dubai Karachi "
    "Lahore Dhaka Hanoi Manila Jakarta Seoul Busan Kyoto Nagoya Bogota Santiago Havana Dallas",
    "cat dog horse cow sheep goat pig hen duck goose fox wolf bear deer hare mouse rat bat otter "
    "seal whale shark trout salmon crab snail frog toad newt snake lizard turtle eagle hawk owl "
    "crow raven swan stork heron robin sparrow finch parrot lion tiger zebra camel donkey monkey "
    "badger beaver hedgehog squirrel rabbit bee ant wasp beetle moth spider dolphin penguin",
    "apple pear plum peach cherry grape lemon orange banana mango fig date melon berry tomato "
    "potato carrot onion garlic pepper bean pea corn rice bread butter cheese milk cream egg honey "
    "sugar salt flour oil soup salad pasta pizza cake pie biscuit jam tea coffee juice water "
    "spinach cabbage lettuce celery radish leek ginger basil mint olive walnut almond yogurt",
    "red green blue yellow orange purple pink brown black white grey silver golden turquoise "
    "violet "
    "beige crimson teal",
    "book pen pencil cup plate spoon fork knife chair table lamp clock key bag box bottle coat hat "
    "shoe sock glove ring watch phone camera radio bicycle car boat train ticket letter stamp "
    "map globe mirror brush comb towel pillow blanket candle basket bucket ladder hammer nail saw "
    "rope drum flute violin guitar piano ball kite puzzle coin wallet umbrella scarf notebook "
    "folder screen keyboard printer cable battery engine wheel tyre bell vase carpet curtain",
    "kitchen garden cellar attic garage office library museum school station harbour market park "
    "bakery hotel theatre hospital bridge tower castle farm forest lake beach island valley "
    "village hall classroom workshop studio balcony hallway bedroom bathroom pantry shed stable "
    "church airport cafe gallery laboratory warehouse greenhouse playground",
    "doctor teacher baker farmer painter writer singer driver pilot nurse lawyer judge cook waiter "
    "tailor plumber gardener librarian engineer carpenter fisherman dentist chemist architect "
    "actor dancer journalist mechanic electrician butcher shepherd sailor translator clerk",
    "small large old new bright dark heavy light quiet loud fast slow warm cold clean dusty soft "
    "hard round square thin thick wide narrow sweet bitter simple strange famous modern ancient "
    "broken empty full wooden plain careful gentle busy calm early late cheap rare common useful",
    "open close send read write find list show check start stop add remove move copy count sort "
    "merge split build clean fetch load save scan print draw play record measure compare update "
    "create delete book order search plan track rename share export import convert reset "
    "archive publish inspect schedule cancel approve assign label group filter rank",
    "name title size limit depth width height colour mode level count unit source target path "
    "label owner status priority category language format region page offset speed weight price "
    "amount currency date time duration start end city country street room floor user team "
    "project topic tag note message subject query filter order key value version channel device "
    "volume brightness temperature quality range step batch delay retries timeout folder "
    "recipient sender author genre rating score distance angle pressure capacity quantity",
    "music history weather travel cooking football chess gardening painting poetry science "
    "mathematics physics chemistry biology geography economics law medicine film theatre fashion "
    "photography astronomy sailing hiking cycling swimming robots bridges trains birds rivers "
    "volcanoes glaciers castles coins stamps maps puzzles",
    "English German French Spanish Italian Dutch Danish Swedish Polish Greek Turkish Arabic Hindi "
    "Korean Japanese Finnish Czech Latin",
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "January February March April May June July August September October November December"};

constexpr std::array<std::string_view, 24> kOnsets{"b", "br", "c", "d",  "dr", "f", "g",  "gr",
                                                   "h", "k",  "l", "m",  "n",  "p", "pl", "r",
                                                   "s", "st", "t", "tr", "v",  "w", "z",  "sh"};
constexpr std::array<std::string_view, 11> kVowels{"a", "e",  "i",  "o",  "u", "a",
                                                   "e", "ai", "ea", "io", "ou"};
constexpr std::array<std::string_view, 9> kCodas{"", "", "", "n", "r", "l", "s", "m", "x"};

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// The words of a list for one side of the held-out line. Weekdays and months are too few to share.
const std::vector<std::string>& words_of(WordList list, bool held_out) {
  static const auto all = [] {
    std::array<std::array<std::vector<std::string>, 2>, kLists.size()> out;
    for (size_t i = 0; i < kLists.size(); ++i) {
      const auto words = split_words(kLists[i]);
      const bool is_shared = i >= static_cast<size_t>(WordList::kWeekdays);
      for (size_t k = 0; k < words.size(); ++k) {
        const bool is_held_out = k % kHeldOutOneIn == kHeldOutOneIn - 1;
        for (const bool side : {false, true}) {
          if (is_shared || is_held_out == side) out[i][side ? 1 : 0].push_back(words[k]);
        }
      }
    }
    return out;
  }();
  return all[static_cast<size_t>(list)][held_out ? 1 : 0];
}

bool is_held_out_name(std::string_view name) {
  return CounterRandom(0, name).bits(0) % kHeldOutOneIn == 0;
}

}  // namespace

std::string TaskWords::one(WordList list) { return random_.pick(words_of(list, held_out_)); }

std::vector<std::string> TaskWords::some(WordList list, size_t count) {
  std::vector<std::string> words = words_of(list, held_out_);
  random_.shuffle(words);
  while (words.size() < count) words.push_back(made_up(2));
  words.resize(count);
  return words;
}

std::string TaskWords::made_up(int syllables) {
  for (;;) {
    std::string word;
    for (int i = 0; i < syllables; ++i) {
      word += random_.pick(kOnsets);
      word += random_.pick(kVowels);
      if (i + 1 == syllables || random_.percent(25)) word += random_.pick(kCodas);
    }
    if (is_held_out_name(word) == held_out_) return word;
  }
}

std::string TaskWords::identifier() {
  std::vector<std::string> parts;
  const int form = random_.between(0, 9);
  if (form < 4) {
    parts = {one(WordList::kVerbs), one(WordList::kThings)};
  } else if (form < 6) {
    parts = {one(WordList::kVerbs), made_up(random_.between(1, 3))};
  } else if (form < 8) {
    parts = {one(WordList::kFields)};
    if (random_.percent(50)) parts.insert(parts.begin(), one(WordList::kThings));
  } else {
    parts = {made_up(random_.between(2, 3))};
    if (random_.percent(50)) parts.push_back(one(WordList::kFields));
  }
  std::string out = parts.front();
  const bool is_camel = random_.percent(20);
  for (size_t i = 1; i < parts.size(); ++i)
    out += is_camel ? capitalised(parts[i]) : "_" + parts[i];
  return out;
}

std::string TaskWords::title() {
  std::string out = one(WordList::kAdjectives);
  if (random_.percent(60)) out += " " + one(WordList::kColours);
  if (random_.percent(50)) out += " " + one(WordList::kThings);
  return out + " " + (random_.percent(50) ? one(WordList::kAnimals) : one(WordList::kTopics));
}

std::string TaskWords::code() {
  std::string out;
  for (int i = random_.between(2, 3); i > 0; --i) out += static_cast<char>('A' + random_.below(26));
  out += "-";
  // The last digit tells the sides apart.
  const int number = random_.between(10, 999) * 10;
  return out + std::to_string(number + (held_out_ ? 7 : random_.between(0, 6)));
}

std::string capitalised(std::string word) {
  if (!word.empty() && word[0] >= 'a' && word[0] <= 'z') word[0] = static_cast<char>(word[0] - 32);
  return word;
}

std::string enumeration(const std::vector<std::string>& items, std::string_view last) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += i + 1 == items.size() ? last : std::string_view(", ");
    out += items[i];
  }
  return out;
}

}  // namespace runtime
