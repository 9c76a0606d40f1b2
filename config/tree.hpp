// A YAML file as a small tree with marks, built from yaml-cpp's events. yaml-cpp's own tree accepts
// duplicate keys silently and forgets where things were, so we do not use it.
//
// Refused here: duplicate keys, anchors, aliases, merge keys, tags, keys that are no text, several
// documents, nesting deeper than depth_max. load.cpp bounds the size.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/error.hpp"

namespace hotlane::config {

inline constexpr int depth_max = 32;
inline constexpr std::size_t file_bytes_max = 1024 * 1024;
inline constexpr std::size_t problems_kept_max = 1'000;  // the rest is only counted

struct source_file {
    std::string name;
    std::string text;

    [[nodiscard]] std::string_view line(int number) const;  // from 1; empty when there is none
};

struct entry;
struct node {
    enum class kind { null, scalar, sequence, map } type{kind::null};
    const source_file* file{};
    int line{1};
    int column{1};
    bool quoted{false};
    bool refused{false};         // an alias: complained of already
    std::string text;            // scalar
    std::vector<node> items;     // sequence
    std::vector<entry> entries;  // map, in the order of the file

    [[nodiscard]] location where() const { return {file ? file->name : "", line, column}; }
    [[nodiscard]] const node* find(std::string_view key) const;
};

struct entry {
    node key;
    node value;
};

std::string_view to_string(node::kind kind) noexcept;  // "a list", for messages

// What went wrong so far, over all files of one load.
class problem_list {
  public:
    void add(problem p);
    void error(location at, std::string path, std::string message, std::string mend = {});
    void warn(location at, std::string path, std::string message, std::string mend = {});
    [[nodiscard]] bool has_errors() const noexcept { return errors_ > 0; }
    [[nodiscard]] std::size_t errors() const noexcept { return errors_; }
    [[nodiscard]] const std::vector<problem>& all() const noexcept { return problems_; }

  private:
    std::vector<problem> problems_;
    std::size_t errors_{};
};

// Parses one file; problems go to `out`. Nothing: it could not be parsed to its end. `file` must
// outlive the tree.
std::optional<node> parse_tree(const source_file& file, problem_list& out);

}  // namespace hotlane::config
