// From the trees of all files to a model: merge, read, inherit, check. Called by load.cpp only.
#pragma once

#include <deque>

#include "config/files.hpp"
#include "config/load.hpp"
#include "config/tree.hpp"

namespace hotlane::config {

struct assembly {
    std::deque<source_file> files;  // stable addresses; [0] is the main file
    problem_list problems;
    origin_map origins;
    model value;
};

// Appends what the files named by `include` of `root` hold. `access` null: includes are refused.
void merge_includes(assembly& work, node& root, file_access* access);

// Reads the merged tree.
void read_model(assembly& work, const node& root);

// Rules that join several values (checks.cpp); `access` null: no file is looked for.
void check_model(assembly& work, file_access* access);

// Where `path` or its nearest written ancestor stands.
location origin_of(const assembly& work, std::string path);

}  // namespace hotlane::config
