#include "runtime/train/corpus_builder.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime/canonical_json.hpp"
#include "runtime/output_files.hpp"
#include "runtime/train/corpus_document.hpp"
#include "runtime/train/corpus_files.hpp"
#include "runtime/train/corpus_sources.hpp"
#include "runtime/train/near_duplicates.hpp"

namespace runtime {

namespace {

struct Candidate {
  CorpusDocument document;
  bool held_out = false;
};

struct Removed {
  CorpusDocument document;
  std::string duplicate_of;  // the path of the document that stays
};

struct Corpus {
  std::vector<Candidate> kept;
  std::vector<Removed> removed;
};

// Held-out documents first; each group by package and path.
std::vector<Candidate> candidates_of(std::vector<CorpusPackage>& packages) {
  std::vector<Candidate> out;
  for (CorpusPackage& package : packages) {
    for (CorpusDocument& document : package.documents) {
      const bool held_out = package.may_be_held_out && is_in_held_out_fiftieth(document);
      out.push_back({std::move(document), held_out});
    }
  }
  std::stable_partition(out.begin(), out.end(),
                        [](const Candidate& candidate) { return candidate.held_out; });
  return out;
}

Corpus without_near_duplicates(std::vector<Candidate> candidates) {
  Corpus corpus;
  NearDuplicates known;
  std::vector<std::string> paths;
  for (Candidate& candidate : candidates) {
    paths.push_back(candidate.document.path);
    const auto original = known.add(candidate.document.text, paths.size() - 1, candidate.held_out);
    if (original) {
      corpus.removed.push_back({std::move(candidate.document), paths[*original]});
    } else {
      corpus.kept.push_back(std::move(candidate));
    }
  }
  return corpus;
}

// Keeps the training documents of smallest sha256(package + path) that fit, in the order they had.
void limit_size(std::vector<Candidate>& candidates, size_t max_bytes) {
  std::vector<std::pair<std::string, size_t>> order;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const CorpusDocument& document = candidates[i].document;
    if (!candidates[i].held_out)
      order.emplace_back(sha256_hex(document.package + document.path), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<bool> drop(candidates.size());
  size_t bytes = 0;
  for (const auto& [hash, i] : order) {
    bytes += candidates[i].document.text.size();
    drop[i] = bytes > max_bytes;
  }
  std::vector<Candidate> kept;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!drop[i]) kept.push_back(std::move(candidates[i]));
  }
  candidates = std::move(kept);
}

std::string identity(const CorpusDocument& document) {
  return "\"package\": " + json_quoted(document.package) +
         ", \"path\": " + json_quoted(document.path) +
         ", \"sha256\": " + json_quoted(sha256_hex(document.text)) +
         ", \"bytes\": " + std::to_string(document.text.size());
}

std::string list(const char* name, const std::vector<std::string>& items) {
  std::string out = "\"" + std::string(name) + "\": [";
  for (size_t i = 0; i < items.size(); ++i) out += (i == 0 ? "\n  {" : ",\n  {") + items[i] + "}";
  return out + "\n]";
}

void write_manifest(const std::string& path, const std::vector<CorpusPackage>& packages,
                    const Corpus& corpus) {
  std::vector<std::string> sources, documents, removed;
  for (const CorpusPackage& package : packages) {
    sources.push_back("\"package\": " + json_quoted(package.name) +
                      ", \"version\": " + json_quoted(package.version) +
                      ", \"licence\": " + json_quoted(package.licence));
  }
  for (const Candidate& candidate : corpus.kept) {
    documents.push_back(identity(candidate.document) +
                        ", \"held_out\": " + (candidate.held_out ? "true" : "false"));
  }
  for (const Removed& one : corpus.removed) {
    removed.push_back(identity(one.document) +
                      ", \"duplicate_of\": " + json_quoted(one.duplicate_of));
  }
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << "{\n\"held_out_rule\": \"sha256(package + path), a big-endian number, mod 50 = 0; not of "
         "dict-jargon\",\n"
      << list("packages", sources) << ",\n"
      << list("documents", documents) << ",\n"
      << list("near_duplicates", removed) << "\n}\n";
  out.close();
  if (!out) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace

CorpusSummary build_corpus(const CorpusOptions& options) {
  std::vector<CorpusPackage> packages = read_corpus_packages(options.root);
  Corpus corpus = without_near_duplicates(candidates_of(packages));
  if (options.max_mb) limit_size(corpus.kept, size_t{*options.max_mb} * 1'000'000);

  make_directory(options.directory);
  write_manifest(options.directory + "/manifest.json", packages, corpus);

  CorpusSummary summary;
  summary.near_duplicates = corpus.removed.size();
  std::vector<CorpusDocument> train, held_out;
  for (Candidate& candidate : corpus.kept) {
    (candidate.held_out ? summary.held_out_bytes : summary.bytes) += candidate.document.text.size();
    (candidate.held_out ? held_out : train).push_back(std::move(candidate.document));
  }
  summary.documents = train.size();
  summary.held_out_documents = held_out.size();
  write_corpus_file(corpus_file(options.directory, false), train);
  write_corpus_file(corpus_file(options.directory, true), held_out);
  return summary;
}

}  // namespace runtime
