// YAML to config::model. Strict: unknown or duplicate keys, wrong types, missing units, aliases and
// bad values are problems with file:line:column; all of them are reported, not only the first.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "config/error.hpp"
#include "config/model.hpp"

namespace hotlane::config {

// Where a value was written, by its path ("tools[0].engine.address"); not there: a default. An
// inherited value of a policy has the place where its ancestor wrote it.
using origin_map = std::map<std::string, location, std::less<>>;

inline constexpr std::size_t problems_shown_max = 20;  // the rest is a count

struct loaded {
    model value;
    std::vector<problem> warnings;
    std::string text;  // the warnings rendered, ready to print; empty: none
    origin_map origins;
};
struct refused {
    std::vector<problem> problems;  // at least one error
    std::string text;               // rendered, ready to print
};

// Reads and checks a file (and what it includes). Touches the file system only to read.
tl::expected<loaded, refused> load_file(const std::string& path);

// The same from memory; `name` stands for the file in messages. Reads no file, so `include` is
// refused and the tools' schema files are not looked for.
tl::expected<loaded, refused> load_text(const std::string& text, const std::string& name);

// The policy in force for a tool: a named one or `default`, the groups that cover it, its own keys.
policy::settings settings_of(const model& m, const tool& t);

// Reads a secret now. The text must never be logged. Empty reference: empty text.
tl::expected<std::string, std::string> read_secret(const secret_ref& ref);

}  // namespace hotlane::config
