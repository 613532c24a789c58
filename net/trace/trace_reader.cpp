#include "net/trace/trace_reader.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <utility>

#include "net/trace/csv_table.hpp"
#include "net/trace/request_record.hpp"

namespace net {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> kFormatNames{"mooncake", "agent-json", "agent-tree",
                                                       "messages", "azure",      "record"};

// Of a JSON object by its keys; what has none of these is no trace.
constexpr std::array<std::pair<std::string_view, TraceFormat>, 5> kFormatKeys{
    {{"sluice_record", TraceFormat::kRecord},
     {"timestamp", TraceFormat::kMooncake},
     {"hash_ids", TraceFormat::kMooncake},
     {"messages", TraceFormat::kMessages},
     {"requests", TraceFormat::kAgentJson}}};

std::optional<TraceFormat> format_of(const Fields& fields) {
  for (const auto& [key, format] : kFormatKeys)
    if (fields.find(key) != nullptr) return format;
  return std::nullopt;
}

std::optional<TraceFormat> csv_format(std::string_view header) {
  std::vector<std::string_view> names;
  split_csv(header, names);
  const auto has = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (has("ContextTokens")) return TraceFormat::kAzure;
  if (has("lcp_blocks")) return TraceFormat::kAgentTree;
  return std::nullopt;
}

// Empty: the file is none of ours.
std::optional<TraceFormat> detect(const TraceFile& file) {
  TraceLines lines(file);
  if (!lines.next()) return std::nullopt;
  if (lines.text()[lines.text().find_first_not_of(" \t")] != '{') return csv_format(lines.text());
  JsonBody line(lines.text());
  if (!line.error()) return format_of(line.fields());
  // An object of several lines is a whole file; a broken line is told by the words in it.
  JsonBody whole(file.bytes);
  if (!whole.error()) return format_of(whole.fields());
  for (const auto& [key, format] : kFormatKeys)
    if (file.bytes.find('"' + std::string(key) + '"') != file.bytes.npos) return format;
  return std::nullopt;
}

[[noreturn]] void unknown(const TraceFile& file) {
  bad_row(file, 1,
          "is no trace that we know; expected jsonl of Mooncake (timestamp, hash_ids), of OpenAI "
          "messages or of sluice-serve --record, a kv-cache-tester session as JSON (requests), or "
          "csv with lcp_blocks (kv-cache-tester tree) or ContextTokens (Azure)");
}

std::vector<TraceFile> sessions_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.is_regular_file()) names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  std::vector<TraceFile> files;
  for (const std::string& name : names) {
    TraceFile file = read_trace_file(name);
    if (detect(file) == TraceFormat::kAgentJson) files.push_back(std::move(file));
  }
  if (files.empty())
    throw std::runtime_error(directory + ": holds no kv-cache-tester session; name a file");
  return files;
}

}  // namespace

std::string_view format_name(TraceFormat format) {
  return kFormatNames[static_cast<size_t>(format)];
}

Trace read_trace(const std::vector<std::string>& paths, const TraceOptions& options) {
  std::vector<TraceFile> files;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(read_trace_file(path));
      continue;
    }
    for (TraceFile& file : sessions_in(path)) files.push_back(std::move(file));
  }
  if (files.empty()) throw std::runtime_error("no trace is named");
  const auto format = detect(files.front());
  if (!format) unknown(files.front());
  for (const TraceFile& file : files) {
    const auto other = detect(file);
    if (!other) unknown(file);
    if (*other != *format)
      throw std::runtime_error(file.path + " is of format " + std::string(format_name(*other)) +
                               " and " + files.front().path + " of " +
                               std::string(format_name(*format)) +
                               "; the files of a trace are of one format");
  }
  if (*format == TraceFormat::kAgentJson) return read_agent_json(files);
  if (*format == TraceFormat::kMessages) return read_messages(files, options);
  if (files.size() > 1)
    throw std::runtime_error(files[1].path + ": a trace of format " +
                             std::string(format_name(*format)) + " is one file");
  switch (*format) {
    case TraceFormat::kMooncake:
      return read_mooncake(files.front(), options);
    case TraceFormat::kAgentTree:
      return read_agent_tree(files.front(), options);
    case TraceFormat::kAzure:
      return read_azure(files.front());
    default:
      return read_record(files.front());
  }
}

}  // namespace net
