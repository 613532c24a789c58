#include "runtime/train/corpus_files.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <fstream>
#include <stdexcept>

#include "runtime/canonical_json.hpp"

namespace runtime {

namespace json = boost::json;

std::string corpus_file(const std::string& directory, bool held_out) {
  return directory + (held_out ? "/held_out.jsonl" : "/train.jsonl");
}

void write_corpus_file(const std::string& path, const std::vector<CorpusDocument>& documents) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  for (const CorpusDocument& document : documents) {
    out << "{\"package\": " << json_quoted(document.package)
        << ", \"path\": " << json_quoted(document.path)
        << ", \"text\": " << json_quoted(document.text) << "}\n";
  }
  out.close();
  if (!out) throw std::runtime_error(path + ": cannot be written");
}

std::vector<CorpusDocument> read_corpus_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + ": cannot be read; `sluice-train corpus` writes it");
  std::vector<CorpusDocument> documents;
  for (std::string line; std::getline(in, line);) {
    boost::system::error_code error;
    const json::value value = json::parse(line, error);
    const auto field = [&](const char* name) {
      const json::value* found =
          !error && value.is_object() ? value.get_object().if_contains(name) : nullptr;
      if (found == nullptr || !found->is_string()) {
        throw std::runtime_error(path + ":" + std::to_string(documents.size() + 1) +
                                 ": is not an object with the strings package, path and text");
      }
      return std::string(found->get_string());
    };
    documents.push_back({field("package"), field("path"), field("text")});
  }
  return documents;
}

}  // namespace runtime
