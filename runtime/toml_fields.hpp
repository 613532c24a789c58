// Reads the fields of a TOML table strictly: what is missing, of another type, out of range or not
// known is reported by file and key. Each field is asked for once; finish() refuses the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace runtime {

class TomlFields {
 public:
  // Throws std::runtime_error "PATH:LINE: ..." for what is not TOML.
  static TomlFields parse(std::string_view toml, const std::string& path);
  static TomlFields load(const std::string& path);  // and for a file that cannot be read

  // An absent field leaves `out` as it is. Throw std::runtime_error "PATH: KEY ...".
  void text(std::string_view key, std::string& out);
  void texts(std::string_view key, std::vector<std::string>& out);  // an array, or one text alone
  void flag(std::string_view key, bool& out);
  void number(std::string_view key, double& out, double low, double high);
  void numbers(std::string_view key, std::vector<double>& out, double low, double high);
  template <class Whole>
  void whole(std::string_view key, Whole& out, uint64_t low, uint64_t high) {
    if (const auto value = whole_number(key, low, high)) out = static_cast<Whole>(*value);
  }
  // `known`: what the text may be; `out` becomes its place in the list.
  template <class Enum>
  void one_of(std::string_view key, Enum& out, const std::vector<std::string_view>& known) {
    if (const auto place = place_in(key, known)) out = static_cast<Enum>(*place);
  }
  // read(fields) for the table `key`, if it is there; for each table of the array `key`.
  void table(std::string_view key, const std::function<void(TomlFields&)>& read);
  void tables(std::string_view key, const std::function<void(TomlFields&)>& read);

  bool has(std::string_view key) const;
  void require(std::string_view key, std::string_view what) const;  // it is there
  void finish() const;                                              // nothing else is
  [[noreturn]] void fail(std::string_view key, const std::string& problem) const;

 private:
  struct Node;
  TomlFields(std::shared_ptr<const Node> node, std::string path, std::string prefix);
  std::optional<uint64_t> whole_number(std::string_view key, uint64_t low, uint64_t high);
  std::optional<size_t> place_in(std::string_view key, const std::vector<std::string_view>& known);

  std::shared_ptr<const Node> node_;
  std::string path_, prefix_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace runtime
