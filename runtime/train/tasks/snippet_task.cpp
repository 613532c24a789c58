#include "runtime/train/tasks/snippet_task.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/train/tasks/task_random.hpp"
#include "runtime/train/tasks/task_words.hpp"

namespace runtime {

namespace {

// ~a, ~b and ~c stand for names, ~n for a number. Every fourth construct is held out.
constexpr size_t kConstructs = 12, kHeldOutEvery = 4;
struct Language {
  std::string_view name;
  std::array<std::string_view, kConstructs> constructs;
};

constexpr std::array<Language, 8> kLanguages{{
    {"Python",
     {"def ~a(~b, ~c=~n):", "    return [~a for ~a in ~b if ~a > ~n]", "import ~a.~b as ~c",
      "with open(~a) as ~b:", "for ~a in range(~n):", "    self.~a = ~b", "elif ~a is not None:",
      "raise ValueError(f'~a {~b}')", "print(~a, end='')", "class ~a(~b):",
      "    except KeyError as ~a:", "from ~a import ~b, ~c"}},
    {"SQL",
     {"SELECT ~a, ~b FROM ~c;", "INSERT INTO ~a VALUES (~n, '~b');",
      "CREATE TABLE ~a (~b INTEGER, ~c TEXT);", "DELETE FROM ~a WHERE ~b > ~n;",
      "UPDATE ~a SET ~b = ~n;", "SELECT count(*) FROM ~a GROUP BY ~b;", "DROP TABLE ~a;",
      "ALTER TABLE ~a ADD COLUMN ~b TEXT;", "SELECT ~a FROM ~b ORDER BY ~c DESC LIMIT ~n;",
      "CREATE INDEX ~a ON ~b (~c);", "SELECT * FROM ~a JOIN ~b USING (~c);",
      "SELECT max(~a) FROM ~b WHERE ~c IS NOT NULL;"}},
    {"C",
     {"int ~a(char *~b, int ~c) {", "  for (int ~a = 0; ~a < ~n; ~a++) {", "#include <~a.h>",
      "  if (~a == NULL) return -~n;", "static struct ~a *~b;", "  printf(\"%d\\n\", ~a->~b);",
      "#define ~a ~n", "  while (*~a++ != '\\0') ~b--;", "typedef unsigned long ~a;",
      "  ~a = malloc(~n * sizeof(*~a));", "  free(~a->~b);", "void ~a(const char *~b);"}},
    {"Bash",
     {"#!/bin/bash", "for ~a in *.txt; do echo \"$~a\"; done", "export ~a=\"$HOME/~b\"",
      "if [ -f \"$~a\" ]; then rm \"$~a\"; fi", "grep -v ~a ~b.log | sort | uniq -c",
      "echo \"$~a\" > /tmp/~b", "cd ~a && ./~b --~c", "while read -r ~a; do echo $~a; done < ~b",
      "~a=$(cat ~b | wc -l)", "sudo apt-get install ~a", "chmod +x ~a.sh",
      "tar -xzf ~a.tar.gz && cd ~b"}},
    {"HTML",
     {"<div class=\"~a\">~b</div>", "<a href=\"/~a\">~b</a>", "<p>~a <b>~b</b> ~c</p>",
      "<li id=\"~a\">~b</li>", "<img src=\"~a.png\" alt=\"~b\">", "<h1>~a ~b</h1>",
      "<input type=\"text\" name=\"~a\">", "<td width=\"~n\">~a</td>", "<ul class=\"~a\">",
      "<!-- ~a ~b -->", "<script src=\"~a.js\"></script>", "<span style=\"~a\">~b</span>"}},
    {"JSON",
     {"{\"~a\": ~n, \"~b\": \"~c\"}", "{\"~a\": [~n, ~n], \"~b\": null}",
      "[{\"~a\": true}, {\"~a\": false}]", "{\"~a\": {\"~b\": ~n}}", "{\"~a\": \"~b\", \"~c\": []}",
      "[\"~a\", \"~b\", \"~c\"]", "{\"~a\": false}", "{\"~a\": [\"~b\", \"~c\"]}",
      "[{\"~a\": \"~b\"}, {\"~a\": \"~c\"}]", "{\"~a\": {\"~b\": null, \"~c\": ~n}}",
      "{\"~a\": ~n.5}", "[~n, {\"~a\": [\"~b\"]}]"}},
    {"CSS",
     {".~a { color: #~n; }", "#~a .~b { margin: 0 auto; }", ".~a:hover { color: red; }",
      ".~a > .~b { padding: ~npx; }", "body { font-family: ~a, sans-serif; }",
      "@media (max-width: ~npx) { .~a { display: none; } }", "a.~a { text-decoration: none; }",
      "#~a { width: ~n%; height: auto; }", ".~a { border: 1px solid #~n; }",
      "h1, h2 { font-size: ~npx; }", ".~a::before { content: \"~b\"; }",
      "ul.~a li { float: left; }"}},
    {"Lisp",
     {"(defun ~a (~b ~c) (+ ~b ~c))", "(let ((~a ~n)) (print ~a))", "(setq ~a '(~b ~c))",
      "(if (> ~a ~n) (~b ~a) nil)", "(cons ~a (cdr ~b))", "(defvar ~a ~n)",
      "(mapcar #'~a '(~b ~c))", "(cond ((null ~a) ~b) (t (car ~c)))",
      "(lambda (~a) (* ~a ~n))", "(format t \"~~a\" ~b)", "(dolist (~a ~b) (princ ~a))",
      "(when (listp ~a) (append ~a ~b))"}},
}};

constexpr std::array<std::string_view, 3> kQuestions{"Which language is this?",
                                                     "In which language is this written?",
                                                     "Name the language of these lines."};
constexpr std::string_view kHeldOutQuestion = "What language are these lines in?";

std::string filled(std::string_view construct, TaskWords& words) {
  std::array<std::string, 3> names;
  for (std::string& name : names) name = words.made_up(2);
  std::string out;
  for (size_t i = 0; i < construct.size(); ++i) {
    if (construct[i] != '~') {
      out += construct[i];
      continue;
    }
    const char slot = construct[++i];
    if (slot == '~') {
      out += slot;
    } else if (slot == 'n') {
      out += std::to_string(words.random().between(2, 999));
    } else {
      out += names[static_cast<size_t>(slot - 'a')];
    }
  }
  return out;
}

}  // namespace

Example make_snippet_example(uint64_t seed, bool held_out, uint64_t index) {
  TaskRandom random(seed, held_out ? "held-out snippet" : "snippet", index);
  TaskWords words(random, held_out);
  const Language& language = random.pick(kLanguages);
  std::vector<std::string_view> constructs;
  for (size_t i = 0; i < kConstructs; ++i) {
    const bool is_held_out = i % kHeldOutEvery == kHeldOutEvery - 1;
    if (is_held_out == held_out) constructs.push_back(language.constructs[i]);
  }
  random.shuffle(constructs);
  std::string text(held_out ? kHeldOutQuestion : random.pick(kQuestions));
  text += "\n";
  const int lines = random.between(1, 3);
  for (int i = 0; i < lines; ++i) text += "\n" + filled(constructs[static_cast<size_t>(i)], words);
  Example example;
  example.source = TextSource::kChat;
  example.prompt.thinking = false;
  example.prompt.messages = {user_message(std::move(text))};
  example.answer = assistant_message("", std::string(language.name) + ".");
  example.expected.contains = language.name;
  return example;
}

}  // namespace runtime
