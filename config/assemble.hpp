// From the trees of all files to a model: merge, read, inherit, check. Called by load.cpp only.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "config/files.hpp"
#include "config/load.hpp"
#include "config/tree.hpp"

namespace hotlane::config {

struct assembly {
    // Stable addresses; [0] is the main file. Overlays of the model point into them.
    std::shared_ptr<std::deque<source_file>> kept{std::make_shared<std::deque<source_file>>()};
    std::deque<source_file>& files{*kept};
    problem_list problems;
    origin_map origins;
    model value;
};

// Appends what the files named by `include` of `root` hold. `access` null: includes are refused.
void merge_includes(assembly& work, node& root, file_access* access);

// Reads the merged tree.
void read_model(assembly& work, const node& root);

// Where the values of a tool's own policy come from, as origins of "tools[i].set.*".
bool has_overlay(const model& m, const tool& t);

// What no value alone shows: rules that can never act, or act against each other (lint.cpp).
struct lint_notes {
    std::function<void(const std::string& path, std::string message, std::string mend)> error;
    std::function<void(const std::string& path, std::string message, std::string mend)> warn;
    std::function<bool(const std::string& path)> written;  // in a file, not a default
};
void lint_policy(const std::string& path,
                 const policy::settings& s,
                 const model& m,
                 const lint_notes& say);

// Rules that join several values (checks.cpp); `access` null: no file is looked for.
void check_model(assembly& work, file_access* access);

// Where `path` or its nearest written ancestor stands.
location origin_of(const assembly& work, std::string path);

}  // namespace hotlane::config
