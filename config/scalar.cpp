#include "config/scalar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>

#include <fmt/format.h>

namespace hotlane::config {
namespace {

struct unit {
    std::string_view name;
    std::int64_t value;
};
// Largest first, the order in which they are written.
constexpr std::array duration_units{unit{"d", 86'400'000},
                                    unit{"h", 3'600'000},
                                    unit{"m", 60'000},
                                    unit{"s", 1'000},
                                    unit{"ms", 1}};
constexpr std::array size_units{
    unit{"GiB", 1 << 30}, unit{"MiB", 1 << 20}, unit{"KiB", 1 << 10}, unit{"B", 1}};
constexpr std::int64_t value_max = std::numeric_limits<std::int64_t>::max() / 1024;

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

tl::unexpected<complaint> no(std::string message, std::string mend = {}) {
    return tl::unexpected<complaint>{complaint{std::move(message), std::move(mend)}};
}

std::string_view take(std::string_view& text, bool (*is)(char)) {
    std::size_t n = 0;
    while (n < text.size() && is(text[n]))
        ++n;
    auto head = text.substr(0, n);
    text.remove_prefix(n);
    return head;
}

std::optional<std::int64_t> digits(std::string_view text) {
    std::int64_t value{};
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (ec != std::errc{} || end != text.data() + text.size() || value > value_max) return {};
    return value;
}

bool all_digits(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

}  // namespace

std::string quoted(std::string_view text) {
    constexpr std::size_t shown = 40;
    std::string out = "\"";
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (i >= shown && (c & 0xC0U) != 0x80) {  // never in the middle of a character
            out += "...";
            break;
        }
        if (c < 0x20 || c == 0x7F) {
            out += fmt::format("\\x{:02x}", c);
        } else {
            out += text[i];
        }
    }
    return out + "\"";
}

parsed<milliseconds> parse_duration(std::string_view text) {
    const auto whole = quoted(text);
    if (text == "0") return milliseconds{0};
    if (all_digits(text)) {
        return no(whole + " needs a unit", fmt::format("for example {0}s or {0}m", text));
    }
    if (!text.empty() && text[0] == '-') return no(whole + " is negative", "for example 30s");
    std::int64_t total = 0;
    std::size_t next = 0;  // units must come in falling order, each once
    while (!text.empty()) {
        const auto number = take(text, is_digit);
        if (!text.empty() && text[0] == '.') {
            return no(whole + " has a fraction", "use a smaller unit, for example 1500ms");
        }
        const auto name = take(text, [](char c) { return c >= 'a' && c <= 'z'; });
        const auto* it = std::find_if(duration_units.begin() + next,
                                      duration_units.end(),
                                      [&](const unit& u) { return u.name == name; });
        const auto value = digits(number);
        if (number.empty() || it == duration_units.end()) {
            return no(whole + " is not a duration", "for example 250ms, 30s, 1m30s or 24h");
        }
        if (!value || *value > (value_max - total) / it->value) return no(whole + " is too long");
        total += *value * it->value;
        next = static_cast<std::size_t>(it - duration_units.begin()) + 1;
    }
    if (next == 0) return no(whole + " is not a duration", "for example 30s");
    return milliseconds{total};
}

parsed<std::int64_t> parse_size(std::string_view text) {
    const auto whole = quoted(text);
    if (text == "0") return 0;
    if (all_digits(text)) {
        const auto plain = digits(text).value_or(0);
        const auto guess = plain >= 1024 ? print_size(plain) : fmt::format("{}KiB", plain);
        return no(whole + " needs a unit", "for example " + guess);
    }
    if (!text.empty() && text[0] == '-') return no(whole + " is negative", "for example 64KiB");
    const auto number = take(text, is_digit);
    const auto value = digits(number);
    if (number.empty()) return no(whole + " is not a size", "for example 64KiB or 1MiB");
    for (const auto& u : size_units) {
        if (text != u.name) continue;
        if (!value || *value > value_max / u.value) return no(whole + " is too large");
        return *value * u.value;
    }
    const char first = text.empty() ? ' ' : static_cast<char>(text[0] & ~0x20);
    if (first == 'K' || first == 'M' || first == 'G') {
        return no(whole + " has an unclear unit", fmt::format("{}{}iB", number, first));
    }
    return no(whole + " is not a size", "for example 64KiB or 1MiB");
}

parsed<std::int64_t> parse_integer(std::string_view text) {
    if (text.size() > 1 && text[0] == '-' && all_digits(text.substr(1))) {
        return no(quoted(text) + " is negative");
    }
    if (!all_digits(text)) return no(quoted(text) + " is not a whole number");
    if (text.size() > 1 && text[0] == '0') {
        return no(quoted(text) + " begins with 0", "write it without");
    }
    const auto value = digits(text);
    if (!value) return no(quoted(text) + " is too large");
    return *value;
}

parsed<double> parse_number(std::string_view text) {
    double value{};
    const auto [end, ec] =
        std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    if (ec != std::errc{} || end != text.data() + text.size() || !(value == value) ||
        value > 1e15 || value < -1e15) {
        return no(quoted(text) + " is not a number", "for example 0.5");
    }
    if (value < 0 || text[0] == '-') return no(quoted(text) + " is negative");
    return value;
}

parsed<double> parse_ratio(std::string_view text) {
    if (!text.empty() && text.back() == '%') {
        return no(quoted(text) + " is not a ratio", "write 0.5 for 50 %");
    }
    auto value = parse_number(text);
    if (value && *value > 1) return no(quoted(text) + " is not in 0..1", "write 0.5 for 50 %");
    return value;
}

parsed<bool> parse_boolean(std::string_view text) {
    if (text == "true") return true;
    if (text == "false") return false;
    std::string low{text};
    for (auto& c : low)
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    for (const auto* word : {"yes", "on", "y", "true", "1"}) {
        if (low == word) return no(quoted(text) + " is not a boolean", "write true");
    }
    for (const auto* word : {"no", "off", "n", "false", "0"}) {
        if (low == word) return no(quoted(text) + " is not a boolean", "write false");
    }
    return no(quoted(text) + " is not a boolean", "write true or false");
}

parsed<endpoint> parse_endpoint(std::string_view text) {
    static constexpr std::string_view mend =
        "for example 127.0.0.1:5432, [::1]:5432 or /run/postgresql:5432";
    if (text.find("://") != text.npos || text.find('@') != text.npos) {
        // Such a text may carry a password, so it is not repeated.
        return no("is a URL, but a plain address is meant", std::string{mend});
    }
    const auto colon = text.rfind(':');
    const bool bracketed = !text.empty() && text[0] == '[';
    const auto close = text.find(']');
    if (colon == text.npos || (bracketed && (close == text.npos || colon != close + 1))) {
        return no(quoted(text) + " needs a port", std::string{mend});
    }
    auto host = text.substr(0, colon);
    if (bracketed) {
        host = host.substr(1, host.size() - 2);
    } else if (host.find(':') != host.npos && host[0] != '/') {
        return no(quoted(text) + " is ambiguous", "write an IPv6 address in brackets: [::1]:5432");
    }
    if (host.empty()) return no(quoted(text) + " needs a host", std::string{mend});
    if (host.find_first_of(" \t\r\n") != host.npos || host.size() > 255) {
        return no(quoted(text) + " is not an address", std::string{mend});
    }
    const auto port = parse_integer(text.substr(colon + 1));
    if (!port || *port > 65'535) {
        return no(quoted(text.substr(colon + 1)) + " is not a port", "a number from 1 to 65535");
    }
    return endpoint{std::string{host}, static_cast<std::uint16_t>(*port)};
}

std::string print_duration(milliseconds value) {
    auto left = value.count();
    if (left == 0) return "0";
    std::string out;
    for (const auto& u : duration_units) {
        if (u.name == "d") continue;  // 24h is what people write
        if (const auto n = left / u.value; n > 0) out += fmt::format("{}{}", n, u.name);
        left %= u.value;
    }
    return out;
}

std::string print_size(std::int64_t bytes) {
    for (const auto& u : size_units) {
        if (bytes > 0 && bytes % u.value == 0) return fmt::format("{}{}", bytes / u.value, u.name);
    }
    return "0";
}

std::string print_number(double value) {
    return fmt::format("{}", value);
}

std::string print_endpoint(const endpoint& at) {
    const bool v6 = !at.is_unix() && at.host.find(':') != std::string::npos;
    return v6 ? fmt::format("[{}]:{}", at.host, at.port) : fmt::format("{}:{}", at.host, at.port);
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        auto corner = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const auto cost = corner + (a[i - 1] == b[j - 1] ? 0U : 1U);
            corner = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, cost});
        }
    }
    return row.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
    constexpr std::size_t far = 2;
    constexpr std::size_t word_max = 64;  // longer ones are no slip of the finger
    std::string best;
    std::size_t least = far + 1;
    if (word.size() > word_max) return best;
    for (const auto& k : known) {
        // A short word would be "near" to any other short word.
        const auto d = edit_distance(word, k);
        if (d < least && d < std::max(word.size(), k.size()) / 2 + 1 && d < k.size()) {
            least = d;
            best = k;
        }
    }
    return best;
}

}  // namespace hotlane::config
