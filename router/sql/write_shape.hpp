// How a one-row write depends on the row it writes: what lever 2 has to know of a hot statement.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hotlane::sql {

struct assignment {
    enum class form : unsigned char {
        increment,  // n = n + amount, n = n - amount; amount is a literal or a parameter
        constant,   // reads nothing of the row: a literal, a parameter, now()
        computed    // anything else
    };
    std::string column;
    form what{form::computed};
    std::string amount;  // "5", "-5", "$1", "-$1"; of an increment
};

struct write_shape {
    std::string table;
    bool upsert{false};  // INSERT .. VALUES .. ON CONFLICT (keys) DO UPDATE
    std::vector<assignment> assignments;
    std::vector<std::string> keys;       // WHERE column = literal or parameter
    std::vector<std::string> condition;  // columns that the rest of WHERE reads
    bool other_condition{false};         // WHERE has more than key comparisons
    std::vector<std::string> returning;  // columns; "*" for all
};

// Nothing: not one UPDATE with a WHERE, and not one upsert, that reads no row but its own.
std::optional<write_shape> read_write_shape(std::string_view sql);

}  // namespace hotlane::sql
