// Recorded sessions as a stream of requests in the order in which a server would see them.
#pragma once

#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/cache_messages.hpp"

namespace bench {

struct TraceRequest {
  double time = 0;  // seconds
  std::vector<memory::KeyElement> prompt, output;
};

struct Trace {
  std::string name;
  uint32_t tokens_per_element = 1;
  uint32_t page_elements = 64;
  std::vector<TraceRequest> requests;  // by time
};

// Whole lines of a file, gzipped or not.
inline std::vector<std::string> read_lines(const std::string& path) {
  if (path.find('\'') != std::string::npos) throw std::runtime_error("a quote in " + path);
  const std::string command = "gzip -cdf '" + path + "'";
  const auto close = [](FILE* file) { pclose(file); };
  std::unique_ptr<FILE, decltype(close)> pipe(popen(command.c_str(), "r"), close);
  if (!pipe) throw std::runtime_error("cannot run gzip");
  std::string text;
  char buffer[1 << 16];
  for (size_t got = 0; (got = fread(buffer, 1, sizeof buffer, pipe.get())) > 0;) {
    text.append(buffer, got);
  }
  if (text.empty()) throw std::runtime_error("cannot read " + path);
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  return lines;
}

inline void sort_by_time(Trace& trace) {
  std::stable_sort(trace.requests.begin(), trace.requests.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
}

// Coding-agent sessions: an element is a block of 64 tokens. `t` of a session starts at 0; sessions
// begin at random within an hour.
inline Trace coding_trace(const std::string& folder, size_t sessions, uint32_t seed) {
  Trace trace{"coding, " + std::to_string(sessions) + " sessions", 64, 1, {}};
  std::map<std::string, std::vector<std::vector<std::string>>> rows;  // by session
  const auto lines = read_lines(folder + "/kv-cache-tester/requests_tree.csv.gz");
  for (size_t i = 1; i < lines.size(); ++i) {
    std::vector<std::string> fields;
    std::istringstream in(lines[i]);
    for (std::string field; std::getline(in, field, ',');) fields.push_back(field);
    rows[fields.at(0)].push_back(std::move(fields));
  }
  std::vector<std::string> names;
  for (const auto& [name, list] : rows) names.push_back(name);
  std::mt19937 rng(seed);
  std::shuffle(names.begin(), names.end(), rng);
  names.resize(std::min(sessions, names.size()));
  uint64_t fresh = 1;
  for (const auto& name : names) {
    const double begin = std::uniform_real_distribution<double>(0, 3600)(rng);
    std::unordered_map<int, std::vector<memory::KeyElement>> prompts;  // by request number
    for (const auto& row : rows[name]) {
      const int number = std::stoi(row.at(3)), parent = std::stoi(row.at(14));
      const size_t common = std::stoul(row.at(13)), blocks = std::stoul(row.at(12));
      auto& prompt = prompts[number];
      if (parent >= 0) {
        const auto& from = prompts.at(parent);
        prompt.assign(from.begin(), from.begin() + static_cast<long>(common));
      }
      while (prompt.size() < blocks) prompt.push_back(fresh++);
      trace.requests.push_back({begin + std::stod(row.at(4)), prompt, {}});
      trace.requests.back().prompt.push_back(fresh++);  // the tokens behind the last whole block
    }
  }
  sort_by_time(trace);
  return trace;
}

// About a token each: runs of at most six letters or three digits, or one other character.
inline void append_tokens(std::string_view text, std::vector<memory::KeyElement>& tokens) {
  for (size_t i = 0; i < text.size();) {
    size_t end = i + (text[i] == ' ' && i + 1 < text.size() ? 1 : 0);
    const auto kind = [&](size_t at) {
      const auto c = static_cast<unsigned char>(text[at]);
      return std::isalpha(c) ? 1 : std::isdigit(c) ? 2 : 0;
    };
    const int first = kind(end);
    const size_t most = end + (first == 1 ? 6 : first == 2 ? 3 : 1);
    do ++end;
    while (end < std::min(most, text.size()) && kind(end) == first);
    tokens.push_back(std::hash<std::string_view>{}(text.substr(i, end - i)));
    i = end;
  }
}

// Conversations as chat messages: every assistant message was a request. Sessions arrive, and their
// users and tools answer, after exponential times of the given means.
inline Trace chat_trace(const std::string& path, const std::string& name, double arrival_s,
                        double answer_s, uint32_t seed) {
  Trace trace{name, 1, 64, {}};
  std::mt19937 rng(seed);
  double begin = 0;
  auto wait = [&](double mean) { return std::exponential_distribution<double>(1 / mean)(rng); };
  for (const auto& line : read_lines(path)) {
    const auto session = boost::json::parse(line);
    double now = begin += wait(arrival_s);
    std::vector<memory::KeyElement> tokens;
    for (const auto& message : session.at("messages").as_array()) {
      std::vector<memory::KeyElement> piece;
      const auto& fields = message.as_object();
      const std::string_view role = fields.at("role").as_string();
      append_tokens(role, piece);
      for (const char* field : {"content", "tool_calls"}) {
        const auto* value = fields.if_contains(field);
        if (value == nullptr || value->is_null()) continue;
        append_tokens(
            value->is_string() ? std::string(value->as_string()) : boost::json::serialize(*value),
            piece);
      }
      if (role == "assistant") {
        trace.requests.push_back({now, tokens, piece});
        // What the template writes before the answer is a part of the prompt.
        trace.requests.back().prompt.push_back(piece.front());
        trace.requests.back().output.erase(trace.requests.back().output.begin());
        now += wait(answer_s);
      }
      tokens.insert(tokens.end(), piece.begin(), piece.end());
    }
  }
  sort_by_time(trace);
  return trace;
}

}  // namespace bench
