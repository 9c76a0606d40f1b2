// Why a session must keep its link: what it holds there cannot be given to another one.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hotlane::session {

enum class pin : std::uint8_t {
    none,
    listen,
    temporary_object,
    advisory_lock,
    holdable_cursor,
    sql_prepare,
    role,
    string_syntax,     // standard_conforming_strings is off: statements are not understood
    session_function,  // a function that keeps something in the home's session
    unreadable,
    other
};
inline constexpr std::array all_pins{pin::listen,
                                     pin::temporary_object,
                                     pin::advisory_lock,
                                     pin::holdable_cursor,
                                     pin::sql_prepare,
                                     pin::role,
                                     pin::string_syntax,
                                     pin::session_function,
                                     pin::unreadable,
                                     pin::other};

std::string_view to_string(pin reason) noexcept;  // for people
std::string_view label_of(pin reason) noexcept;   // for metrics

}  // namespace hotlane::session
