// Documents to text: HTML, reStructuredText, and near duplicates among them.
#include <catch2/catch.hpp>
#include <string>

#include "runtime/train/corpus_document.hpp"
#include "runtime/train/html_text.hpp"
#include "runtime/train/near_duplicates.hpp"
#include "runtime/train/rest_text.hpp"

namespace {

std::string sentences(int first, int count) {
  std::string out;
  for (int i = first; i < first + count; ++i) {
    const std::string n = std::to_string(i);
    out += "Sentence w" + n + " speaks of a" + n + " and of b" + n + ".\n";
  }
  return out;
}

}  // namespace

TEST_CASE("A page's text has its title, paragraphs on single lines, lists and tables",
          "[runtime][train]") {
  const std::string html = R"(<!DOCTYPE html><html><head><title>Cats &amp; dogs</title></head><body>
<div class="navheader">Prev Next</div><script>var x;</script><svg><text>drawn</text></svg>
<h1>On <em>animals</em></h1><p>A cat&nbsp;is
 small.</p><ul><li><p>purrs</p></li><li>sleeps</li></ul>
<table><tr><td>cat</td><td>4</td></tr><tr><td>bird</td><td>2</td></tr></table>
<pre>
int legs = 4;

  return legs;
</pre></body></html>)";
  CHECK(
      runtime::html_to_text(html) ==
      "Cats & dogs\n\nOn animals\n\nA cat is small.\n\n- purrs\n\n- sleeps\n\ncat | 4\nbird | 2\n\n"
      "int legs = 4;\n\n  return legs;\n");
}

TEST_CASE("A title that is the first heading is not repeated, and broken HTML still gives text",
          "[runtime][train]") {
  CHECK(runtime::html_to_text("<title>One</title><body><h1>One</h1><p>two") == "One\n\ntwo\n");
  CHECK(runtime::html_to_text("").empty());
}

TEST_CASE("What only the documentation's builder reads is dropped from reStructuredText",
          "[runtime][train]") {
  const std::string source =
      ".. _label:\n\nTitle\n=====\n\n.. index::\n   single: word\n   pair: a; b\n\n\n"
      "Text with :mod:`json`.\n\n.. a comment\n   of two lines\n\n.. note::\n\n   Kept.\n\n"
      ".. [1] A footnote.   \n";
  CHECK(runtime::clean_rest_text(source) ==
        "Title\n=====\n\nText with :mod:`json`.\n\n.. note::\n\n   Kept.\n\n.. [1] A footnote.\n");
}

TEST_CASE("A text that repeats most of an earlier one is a near duplicate of it",
          "[runtime][train]") {
  runtime::NearDuplicates known;
  CHECK_FALSE(known.add(sentences(0, 100), 0, false));
  CHECK_FALSE(known.add(sentences(100, 100), 1, false));
  CHECK(known.add(sentences(120, 80) + sentences(200, 5), 2, false) == 1u);
  CHECK_FALSE(known.add(sentences(0, 30) + sentences(300, 70), 3, false));
}

TEST_CASE("A text that holds half of a protected one is removed however long it is",
          "[runtime][train]") {
  runtime::NearDuplicates known;
  CHECK_FALSE(known.add(sentences(0, 20), 7, true));
  CHECK(known.add(sentences(500, 400) + sentences(0, 15), 8, false) == 7u);
  CHECK_FALSE(known.add(sentences(500, 400) + sentences(0, 5), 9, false));
}

TEST_CASE("The held-out rule is sha256 of package and path, big-endian, modulo 50",
          "[runtime][train]") {
  CHECK(runtime::sha256_hex("abc") ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // Worked out with another implementation.
  std::string held_out;
  for (int i = 0; i < 100; ++i) {
    const runtime::CorpusDocument document{"pkg", "/usr/" + std::to_string(i), ""};
    if (runtime::is_in_held_out_fiftieth(document)) held_out += std::to_string(i) + " ";
  }
  CHECK(held_out == "33 75 ");
}
