// Moments, times of day and weekdays: all in UTC, written one way only.
#include <array>
#include <charconv>
#include <optional>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/scalar.hpp"

namespace hotlane::config {

namespace {

constexpr std::array<std::string_view, 7> day_names{
    "mon", "tue", "wed", "thu", "fri", "sat", "sun"};

tl::unexpected<complaint> no(std::string message, std::string mend) {
    return tl::unexpected<complaint>{complaint{std::move(message), std::move(mend)}};
}

// "2026-12-20T18:00" against the form "dddd-dd-ddTdd:dd": the numbers, in order.
template <std::size_t N>
std::optional<std::array<int, N>> numbers_of(std::string_view text, std::string_view form) {
    if (text.size() != form.size()) return std::nullopt;
    std::array<int, N> out{};
    std::size_t at = 0;
    for (std::size_t i = 0; i < form.size(); ++i) {
        const char c = text[i];
        if (form[i] != 'd') {
            if (c != form[i]) return std::nullopt;
            ++at;
            continue;
        }
        if (c < '0' || c > '9' || at >= N) return std::nullopt;
        out[at] = out[at] * 10 + (c - '0');
    }
    return out;
}

std::optional<std::size_t> day_of(std::string_view name) {
    for (std::size_t i = 0; i < day_names.size(); ++i)
        if (day_names[i] == name) return i;
    return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ')
        text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ')
        text.remove_suffix(1);
    return text;
}

}  // namespace

parsed<policy::time_point> parse_moment(std::string_view text) {
    static constexpr std::string_view mend = "for example 2026-12-20T18:00Z; UTC only";
    const auto n = numbers_of<6>(text, "dddd-dd-ddTdd:ddZ");
    if (!n) return no(quoted(text) + " is not a moment", std::string{mend});
    const std::chrono::year_month_day date{std::chrono::year{(*n)[0]},
                                           std::chrono::month{static_cast<unsigned>((*n)[1])},
                                           std::chrono::day{static_cast<unsigned>((*n)[2])}};
    if (!date.ok() || (*n)[3] > 23 || (*n)[4] > 59)
        return no(quoted(text) + " is no day or time", std::string{mend});
    return policy::time_point{std::chrono::sys_days{date}} + std::chrono::hours{(*n)[3]} +
           std::chrono::minutes{(*n)[4]};
}

parsed<milliseconds> parse_clock(std::string_view text) {
    const auto n = numbers_of<2>(text, "dd:dd");
    if (!n || (*n)[1] > 59 || (*n)[0] > 24 || ((*n)[0] == 24 && (*n)[1] > 0))
        return no(quoted(text) + " is not a time of day", "for example 18:00, UTC");
    return std::chrono::hours{(*n)[0]} + std::chrono::minutes{(*n)[1]};
}

parsed<std::uint8_t> parse_days(std::string_view text) {
    static constexpr std::string_view mend = "for example mon-fri or sat,sun";
    unsigned days = 0;
    auto rest = text;
    while (!rest.empty()) {
        const auto comma = rest.find(',');
        const auto part = trimmed(rest.substr(0, comma));
        rest = comma == rest.npos ? std::string_view{} : rest.substr(comma + 1);
        const auto dash = part.find('-');
        const auto first = day_of(part.substr(0, dash));
        const auto last = dash == part.npos ? first : day_of(part.substr(dash + 1));
        if (!first || !last) return no(quoted(text) + " names no days", std::string{mend});
        for (std::size_t i = *first;; i = (i + 1) % day_names.size()) {
            days |= 1U << i;
            if (i == *last) break;
        }
    }
    if (days == 0) return no("names no days", std::string{mend});
    return static_cast<std::uint8_t>(days);
}

std::string print_moment(const policy::time_point& value) {
    return fmt::format("{:%Y-%m-%dT%H:%M}Z",
                       std::chrono::time_point_cast<std::chrono::seconds>(value));
}

std::string print_clock(const milliseconds& value) {
    const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(value).count();
    return fmt::format("{:02}:{:02}", minutes / 60, minutes % 60);
}

std::string print_days(const std::uint8_t& value) {
    std::vector<std::string_view> out;
    for (std::size_t i = 0; i < day_names.size(); ++i)
        if ((value >> i & 1U) != 0) out.push_back(day_names[i]);
    return fmt::format("{}", fmt::join(out, ","));
}

}  // namespace hotlane::config
