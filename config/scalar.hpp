// Text of one scalar to a value with a unit. Pure. A complaint says what is wrong and how to write
// it; it quotes the text, so it is never used for secrets.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "config/model.hpp"

namespace hotlane::config {

struct complaint {
    std::string message;
    std::string mend;
};
template <class T>
using parsed = tl::expected<T, complaint>;

parsed<milliseconds> parse_duration(std::string_view text);  // 30s 1m30s 250ms 24h 7d, or 0
parsed<std::int64_t> parse_size(std::string_view text);      // 512B 64KiB 1MiB 2GiB, or 0
parsed<std::int64_t> parse_integer(std::string_view text);   // decimal, not negative
parsed<double> parse_number(std::string_view text);          // 0.5, not negative
parsed<double> parse_ratio(std::string_view text);           // 0..1
parsed<bool> parse_boolean(std::string_view text);           // true false
parsed<endpoint> parse_endpoint(std::string_view text);      // host:port [v6]:port /dir:port

parsed<policy::time_point> parse_moment(std::string_view text);  // 2026-12-20T18:00Z
parsed<milliseconds> parse_clock(std::string_view text);         // 18:00, a time of the UTC day
parsed<std::uint8_t> parse_days(std::string_view text);          // mon-fri, or sat,sun

// How the same values are written; parse(print(x)) == x.
std::string print_moment(const policy::time_point& value);
std::string print_clock(const milliseconds& value);
std::string print_days(const std::uint8_t& value);
std::string print_duration(milliseconds value);
std::string print_size(std::int64_t bytes);
std::string print_number(double value);
std::string print_endpoint(const endpoint& at);

// The nearest of `known` within edit distance 2; empty: none.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// Text for a message: shortened, control characters escaped.
std::string quoted(std::string_view text);

}  // namespace hotlane::config
