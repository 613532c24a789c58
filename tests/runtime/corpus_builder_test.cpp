// The corpus of a made-up machine: which documents it takes, and that it says what it took.
#include "runtime/train/corpus_builder.hpp"

#include <zlib.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "runtime/train/corpus_files.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

namespace fs = std::filesystem;

std::string prose(const std::string& topic) {
  std::string out;
  for (int i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i);
    out += "In case " + topic + n + " the " + topic + " of part " + n + " is " + topic + ".\n";
  }
  return out;
}

// The files that dpkg and four documentation packages would have put on a machine.
class Machine {
 public:
  Machine() {
    const std::string rest = "/usr/share/doc/python3.11/html/_sources/";
    for (int i = 0; i < 60; ++i) {
      const std::string n = std::to_string(i);
      put("python3.11-doc", rest + "library/m" + n + ".rst.txt", prose("python" + n + "x"));
    }
    put("python3.11-doc", rest + "whatsnew/changelog.rst.txt", prose("change"));
    put("sqlite3-doc", "/usr/share/doc/sqlite3/a.html", "<p>" + prose("sqlite") + "</p>");
    put("sqlite3-doc", "/usr/share/doc/sqlite3/again.html", "<p>" + prose("sqlite") + "more</p>");
    put("sqlite3-doc", "/usr/share/doc/sqlite3/short.html", "<p>Moved.</p>");
    put("postgresql-doc-15", "/usr/share/doc/postgresql-doc-15/html/b.html",
        "<p>" + prose("postgres") + "</p>");
    put("dict-jargon", "/usr/share/dictd/jargon.index",
        "foo\tA\tL\n00-database-info\tA\tB\nbar\tL\tK\n");
    put("dict-jargon", "/usr/share/dictd/jargon.dict.dz", "");
    gzFile file = gzopen((path() + "/usr/share/dictd/jargon.dict.dz").c_str(), "wb");
    gzputs(file, "foo\n  term\nbar\n  word");
    gzclose(file);
  }

  std::string path() const { return directory_.path(); }

  void write_status(const std::set<std::string>& left_out = {}) const {
    std::ofstream status(path() + "/var/lib/dpkg/status");
    for (const char* name : {"python3.11-doc", "sqlite3-doc", "postgresql-doc-15", "dict-jargon"}) {
      if (left_out.contains(name)) continue;
      status << "Package: " << name << "\nStatus: install ok installed\nVersion: 1.2\n\n";
    }
  }

 private:
  void put(const std::string& package, const std::string& file, const std::string& text) const {
    fs::create_directories(fs::path(path() + file).parent_path());
    fs::create_directories(path() + "/var/lib/dpkg/info");
    std::ofstream(path() + file) << text;
    std::ofstream(path() + "/var/lib/dpkg/info/" + package + ".list", std::ios::app)
        << file << "\n";
  }

  support::TemporaryDirectory directory_;
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

runtime::CorpusSummary build(const Machine& machine, const std::string& out) {
  runtime::CorpusOptions options;
  options.directory = out;
  options.root = machine.path();
  return runtime::build_corpus(options);
}

}  // namespace

TEST_CASE("A corpus holds each document once, on one side of the held-out line",
          "[runtime][train]") {
  const Machine machine;
  machine.write_status();
  const support::TemporaryDirectory out;
  const auto summary = build(machine, out.path());
  const auto train = runtime::read_corpus_file(runtime::corpus_file(out.path(), false));
  const auto held_out = runtime::read_corpus_file(runtime::corpus_file(out.path(), true));
  CHECK(train.size() == summary.documents);
  CHECK(held_out.size() == summary.held_out_documents);
  CHECK(train.size() + held_out.size() == 60 + 2 + 2);  // a dictionary gives one for each letter
  CHECK(summary.near_duplicates == 1);
  std::set<std::string> paths;
  for (const auto& document : train) {
    CHECK((document.package == "dict-jargon" || !runtime::is_in_held_out_fiftieth(document)));
    CHECK(paths.insert(document.path).second);
  }
  for (const auto& document : held_out) {
    CHECK(runtime::is_in_held_out_fiftieth(document));
    CHECK(paths.insert(document.path).second);
  }
  CHECK(paths.contains("/usr/share/dictd/jargon.dict.dz#F"));
  CHECK(train.back().text == "foo\n  term\n");

  const auto manifest = boost::json::parse(bytes_of(out.file("manifest.json")));
  CHECK(manifest.at("packages").as_array().size() == 4);
  CHECK(manifest.at("packages").at(0).at("version").as_string() == "1.2");
  CHECK(manifest.at("documents").as_array().size() == paths.size());
  CHECK(manifest.at("near_duplicates").at(0).at("duplicate_of").as_string() ==
        "/usr/share/doc/sqlite3/a.html");
}

TEST_CASE("A corpus has the same bytes each time it is built", "[runtime][train]") {
  const Machine machine;
  machine.write_status();
  const support::TemporaryDirectory first, second;
  build(machine, first.path());
  build(machine, second.path());
  for (const char* file : {"train.jsonl", "held_out.jsonl", "manifest.json"})
    CHECK(bytes_of(first.file(file)) == bytes_of(second.file(file)));
}

TEST_CASE("A package that is missing is named with the line that installs it", "[runtime][train]") {
  const Machine machine;
  machine.write_status({"sqlite3-doc", "dict-jargon"});
  const support::TemporaryDirectory out;
  CHECK_THROWS_WITH(
      build(machine, out.path()),
      Catch::Contains("apt-get install -y --no-install-recommends sqlite3-doc dict-jargon"));
}
