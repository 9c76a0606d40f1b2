// What the rehearsal of a move needs of a statement's text. THREADS: any. Never fails: what is not
// understood gives nullopt, or an empty list.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hotlane::sql {

// The text without its values: words in lower case, a ? for each literal or list of literals. Fit
// to be shown: no value of the application is in it.
std::string shown(std::string_view sql);

// `message` (of a home, about `sql`) without the values that stand in `sql`.
std::string without_values(std::string_view message, std::string_view sql);

// Names of the relations that one statement reads or writes, "s.t" if a schema other than public is
// named; without those that it defines itself (WITH). nullopt: PostgreSQL's parser refuses it.
std::optional<std::vector<std::string>> relations_of(std::string_view sql);

// The same statement over other tables: each relation whose unqualified name is in `names` gets the
// name given there, and references to its columns go along. A schema that is named stays.
std::optional<std::string> with_tables(std::string_view sql,
                                       const std::map<std::string, std::string>& names);

}  // namespace hotlane::sql
