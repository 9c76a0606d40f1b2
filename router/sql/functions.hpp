// What is known of PostgreSQL's built-in functions. A function that is on no list may do anything.
#pragma once

#include <string_view>

namespace hotlane::sql {

enum class function_class : unsigned char {
    pure,              // reads and changes nothing outside its arguments
    sequence,          // changes a sequence, reads no table row
    session_lock,      // pg_advisory_lock and its kin, held until the session ends
    transaction_lock,  // pg_advisory_xact_lock and its kin
    set_config,
    sequence_read,  // currval, lastval: what only this session knows
    session_state,  // keeps, or reads, what only this session has
    unknown,
};
function_class classify_function(std::string_view lower_name);

}  // namespace hotlane::sql
