#include "runtime/train/corpus_sources.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string_view>

#include "runtime/train/debian_package.hpp"
#include "runtime/train/dictionary_text.hpp"
#include "runtime/train/html_text.hpp"
#include "runtime/train/rest_text.hpp"
#include "runtime/utf8.hpp"

namespace runtime {

namespace {

enum class Form { kRest, kHtml, kDictionary };

struct Source {
  std::string_view package, licence, folder, suffix;
  Form form;
  bool may_be_held_out;
};

constexpr std::array<Source, 4> kSources{
    {{"python3.11-doc", "PSF-2.0 (examples 0BSD)", "/usr/share/doc/python3.11/html/_sources/",
      ".rst.txt", Form::kRest, true},
     {"sqlite3-doc", "public domain", "/usr/share/doc/sqlite3/", ".html", Form::kHtml, true},
     {"postgresql-doc-15", "PostgreSQL", "/usr/share/doc/postgresql-doc-15/html/", ".html",
      Form::kHtml, true},
     {"dict-jargon", "public domain", "/usr/share/dictd/", "jargon.dict.dz", Form::kDictionary,
      false}}};

// Change logs, lists of links, and pages put together from others. A name that ends with "/" or
// "*" stands for all that begins with it.
constexpr std::array<std::string_view, 20> kSkipped{"whatsnew/changelog.rst.txt",
                                                    "contents.rst.txt",
                                                    "includes/",
                                                    "releaselog/",
                                                    "syntax/",
                                                    "search.d/",
                                                    "changes.html",
                                                    "chronology.html",
                                                    "requirements.html",
                                                    "syntaxdiagrams.html",
                                                    "keyword_index.html",
                                                    "doc_*",
                                                    "sitemap.html",
                                                    "release-*",
                                                    "release.html",
                                                    "bookindex.html",
                                                    "index.html",
                                                    "biblio.html",
                                                    "news.html",
                                                    "docs.html"};

// Paragraphs that many pages of a package end with.
constexpr std::array<std::string_view, 2> kBoilerplate{"This page last modified on ",
                                                       "See also lists of Objects,"};

constexpr size_t kShortestDocument = 200;  // bytes: less is a page of redirection

bool is_skipped(std::string_view path) {
  return std::any_of(kSkipped.begin(), kSkipped.end(), [&](std::string_view skipped) {
    if (skipped.ends_with('/')) return path.starts_with(skipped);
    if (skipped.ends_with('*')) return path.starts_with(skipped.substr(0, skipped.size() - 1));
    return path == skipped;
  });
}

std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) throw std::runtime_error(path + ": cannot be read");
  return text;
}

// Without bytes that are no UTF-8 and control characters.
std::string valid_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Unit unit = next_utf8_unit(text);
    const bool is_control = unit.bytes == 1 && static_cast<unsigned char>(text.front()) < 0x20 &&
                            text.front() != '\n' && text.front() != '\t';
    if (unit.kind == Utf8Unit::Kind::kValid && !is_control) out += text.substr(0, unit.bytes);
    text.remove_prefix(unit.bytes);
  }
  return out;
}

std::string without_boilerplate(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    if (std::none_of(kBoilerplate.begin(), kBoilerplate.end(),
                     [&](std::string_view start) { return line.starts_with(start); }))
      out += line;
  }
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

// One document for each first letter of the headwords: an entry alone is short.
std::vector<CorpusDocument> dictionary_documents(const std::string& root,
                                                 const std::string& package,
                                                 const std::string& path) {
  const std::string stem = path.substr(0, path.find(".dict.dz"));
  std::map<std::string, std::string> letters;
  for (const DictionaryEntry& entry : read_dictionary(root + stem)) {
    const auto first = static_cast<unsigned char>(entry.headword.front());
    const std::string letter =
        std::isalpha(first) ? std::string(1, static_cast<char>(std::toupper(first))) : "0";
    letters[letter] += entry.text;
  }
  std::vector<CorpusDocument> out;
  for (auto& [letter, text] : letters)
    out.push_back({package, path + "#" + letter, valid_text(text)});
  return out;
}

std::vector<CorpusDocument> read_documents(const std::string& root, const Source& source,
                                           const std::vector<std::string>& files) {
  const std::string package(source.package);
  std::vector<CorpusDocument> out;
  for (const std::string& path : files) {
    if (!path.starts_with(source.folder) || !path.ends_with(source.suffix)) continue;
    if (is_skipped(std::string_view(path).substr(source.folder.size()))) continue;
    if (!std::filesystem::exists(root + path)) continue;  // dpkg was told to leave it out
    if (source.form == Form::kDictionary) return dictionary_documents(root, package, path);
    const std::string bytes = read_bytes(root + path);
    std::string text =
        valid_text(source.form == Form::kHtml ? html_to_text(bytes) : clean_rest_text(bytes));
    text = without_boilerplate(text);
    if (text.size() >= kShortestDocument) out.push_back({package, path, std::move(text)});
  }
  return out;
}

}  // namespace

std::vector<CorpusPackage> read_corpus_packages(const std::string& root) {
  std::vector<CorpusPackage> packages;
  std::string missing, empty;
  for (const Source& source : kSources) {
    const std::string name(source.package);
    const auto installed = find_debian_package(root, name);
    if (!installed) {
      missing += " " + name;
      continue;
    }
    packages.push_back({name, installed->version, std::string(source.licence),
                        source.may_be_held_out, read_documents(root, source, installed->files)});
    if (packages.back().documents.empty()) empty += " " + name;
  }
  if (!missing.empty()) {
    throw std::runtime_error(
        "these packages of the corpus are not installed; install them with\n"
        "  sudo apt-get install -y --no-install-recommends" +
        missing);
  }
  if (!empty.empty()) {
    throw std::runtime_error(
        "these packages are installed, but their documents are not there; does a path-exclude in "
        "/etc/dpkg/dpkg.cfg.d leave out documentation? Remove it, then\n"
        "  sudo apt-get install -y --reinstall" +
        empty);
  }
  return packages;
}

}  // namespace runtime
