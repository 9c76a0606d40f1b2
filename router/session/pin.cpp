#include "router/session/pin.hpp"

namespace hotlane::session {

std::string_view to_string(pin reason) noexcept {
    switch (reason) {
        case pin::none:
            return "none";
        case pin::listen:
            return "LISTEN";
        case pin::temporary_object:
            return "temporary object";
        case pin::advisory_lock:
            return "session advisory lock";
        case pin::holdable_cursor:
            return "holdable cursor";
        case pin::sql_prepare:
            return "SQL-level PREPARE";
        case pin::role:
            return "SET ROLE or SET SESSION AUTHORIZATION";
        case pin::string_syntax:
            return "standard_conforming_strings is off";
        case pin::session_function:
            return "a function that keeps state in its session";
        case pin::unreadable:
            return "a statement too long to be read";
        case pin::other:
            return "more session state than is remembered";
    }
    return "unknown";
}

std::string_view label_of(pin reason) noexcept {
    switch (reason) {
        case pin::none:
            return "none";
        case pin::listen:
            return "listen";
        case pin::temporary_object:
            return "temporary_object";
        case pin::advisory_lock:
            return "advisory_lock";
        case pin::holdable_cursor:
            return "holdable_cursor";
        case pin::sql_prepare:
            return "sql_prepare";
        case pin::role:
            return "role";
        case pin::string_syntax:
            return "string_syntax";
        case pin::session_function:
            return "session_function";
        case pin::unreadable:
            return "unreadable";
        case pin::other:
            return "other";
    }
    return "other";
}

}  // namespace hotlane::session
