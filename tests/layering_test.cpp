// The structure as a test: include direction, who may see CAF, Asio and CUDA, file and line length,
// and that no canonical path uses a libm function or a flag that changes rounding.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

const std::array<std::string, 6> kFolders = {"kernels", "memory", "runtime",
                                             "actors",  "net",    "apps"};

struct SourceLine {
  std::string file;  // relative to the repository
  size_t number = 0;
  std::string text;
};

bool is_source(const fs::path& path) {
  const auto extension = path.extension();
  return extension == ".cpp" || extension == ".hpp" || extension == ".cu" || extension == ".cuh";
}

std::vector<fs::path> sources_under(const std::string& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(SLUICE_SOURCE_DIR) / folder)) {
    if (entry.is_regular_file() && is_source(entry.path())) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<SourceLine> lines_of(const fs::path& path) {
  std::ifstream in(path);
  std::vector<SourceLine> lines;
  const std::string name = fs::relative(path, SLUICE_SOURCE_DIR).string();
  for (std::string text; std::getline(in, text);) lines.push_back({name, lines.size() + 1, text});
  return lines;
}

// Every line of the given folders that `bad` accepts, as one printable list.
template <class Predicate>
std::string offenders(const std::vector<std::string>& folders, Predicate bad) {
  std::ostringstream found;
  for (const auto& folder : folders) {
    for (const auto& path : sources_under(folder)) {
      for (const auto& line : lines_of(path)) {
        if (bad(line)) found << line.file << ":" << line.number << ": " << line.text << "\n";
      }
    }
  }
  return found.str();
}

std::vector<std::string> all_folders() { return {kFolders.begin(), kFolders.end()}; }

std::string without_comment(const std::string& text) { return text.substr(0, text.find("//")); }

size_t rank_of(const std::string& folder) {
  return static_cast<size_t>(std::find(kFolders.begin(), kFolders.end(), folder) -
                             kFolders.begin());
}

}  // namespace

TEST_CASE("An include never points right", "[layering]") {
  const std::regex include(R"re(^\s*#\s*include\s+"(\w+)/)re");
  const auto found = offenders(all_folders(), [&](const SourceLine& line) {
    std::smatch match;
    if (!std::regex_search(line.text, match, include)) return false;
    const size_t target = rank_of(match[1]);
    return target == kFolders.size() || target > rank_of(line.file.substr(0, line.file.find('/')));
  });
  CHECK(found == "");
}

TEST_CASE("Only actors sees CAF, only net sees Asio and Beast, only kernels sees CUDA",
          "[layering]") {
  struct Rule {
    std::string owner;
    std::regex include;
  };
  const std::vector<Rule> rules = {
      {"actors/", std::regex(R"(^\s*#\s*include\s*[<"]caf/)")},
      {"net/", std::regex(R"(^\s*#\s*include\s*[<"]boost/(asio|beast))")},
      {"kernels/", std::regex(R"(^\s*#\s*include\s*[<"](cuda|nccl|cublas))")},
      {"kernels/", std::regex(R"(^\s*#\s*include\s*[<"]hwy/)")},
  };
  for (const auto& rule : rules) {
    const auto found = offenders(all_folders(), [&](const SourceLine& line) {
      return line.file.rfind(rule.owner, 0) != 0 && std::regex_search(line.text, rule.include);
    });
    CHECK(found == "");
  }
}

TEST_CASE("Files stay short enough to read in one sitting", "[layering]") {
  std::ostringstream found;
  auto folders = all_folders();
  folders.push_back("tests");
  for (const auto& folder : folders) {
    for (const auto& path : sources_under(folder)) {
      const size_t count = lines_of(path).size();
      if (count > 400)
        found << fs::relative(path, SLUICE_SOURCE_DIR).string() << ": " << count << " lines\n";
    }
  }
  CHECK(found.str() == "");
}

TEST_CASE("Lines fit in 100 columns", "[layering]") {
  auto folders = all_folders();
  folders.push_back("tests");
  const auto found = offenders(folders, [](const SourceLine& line) {
    // Columns are characters: continuation bytes of UTF-8 do not count. A string literal may not be
    // breakable.
    const auto columns = std::count_if(line.text.begin(), line.text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
    });
    return columns > 100 && line.text.find('"') == std::string::npos;
  });
  CHECK(found == "");
}

TEST_CASE("The name of a test is no option of the test program", "[layering]") {
  // ctest passes it as an argument.
  const std::regex option(R"(TEST_CASE\s*\(\s*"-)");
  const auto found = offenders(
      {"tests"}, [&](const SourceLine& line) { return std::regex_search(line.text, option); });
  CHECK(found == "");
}

TEST_CASE("No canonical path calls libm or reduces across lanes in hardware order", "[layering]") {
  const std::regex offender(
      R"(\bstd::(exp|exp2|expm1|log|log2|log1p|tanh|sinh|cosh|sin|cos|pow|accumulate|reduce|inner_product)\s*\(|\b(ReduceSum|SumOfLanes)\s*\()");
  const auto found = offenders({"kernels"}, [&](const SourceLine& line) {
    return std::regex_search(without_comment(line.text), offender);
  });
  CHECK(found == "");
  // The sampled path of the runtime obeys the same rule.
  const std::regex libm(R"(\bstd::(exp|exp2|expm1|log|log2|log1p|tanh|pow)\s*\(|\bREDUCE)");
  const auto sampled = offenders({"runtime"}, [&](const SourceLine& line) {
    const bool sampled_path = line.file.find("runtime/sampler") == 0 ||
                              line.file.find("_layer.cpp") != std::string::npos ||
                              line.file.find("runtime/hybrid_") == 0 ||
                              line.file.find("runtime/noise") == 0;
    return sampled_path && std::regex_search(without_comment(line.text), libm);
  });
  CHECK(sampled == "");
}

TEST_CASE("No build flag may change rounding", "[layering]") {
  for (const char* name : {"CMakeLists.txt", "CMakePresets.json", "kernels/cuda/CMakeLists.txt",
                           "tests/CMakeLists.txt"}) {
    std::ifstream in(fs::path(SLUICE_SOURCE_DIR) / name);
    REQUIRE(in);
    std::stringstream text;
    text << in.rdbuf();
    CAPTURE(name);
    CHECK(text.str().find("fast-math") == std::string::npos);
    CHECK(text.str().find("-Ofast") == std::string::npos);
    CHECK(text.str().find("march=native") == std::string::npos);
  }
  std::ifstream in(fs::path(SLUICE_SOURCE_DIR) / "CMakeLists.txt");
  std::stringstream text;
  text << in.rdbuf();
  CHECK(text.str().find("-ffp-contract=off") != std::string::npos);
}
