#include "metrics/log.hpp"

#include <unistd.h>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "metrics/utf8.hpp"

namespace hotlane::metrics {
namespace {

constexpr std::size_t text_max = 4'096;   // of one field; statements and replies can be huge
constexpr std::size_t kinds_max = 1'024;  // of events whose rate is watched

template <class... F>
struct overloaded : F... {
    using F::operator()...;
};
template <class... F>
overloaded(F...) -> overloaded<F...>;

// Escapes for JSON and for quoted text alike: the same rules serve both.
std::string escaped(std::string_view raw) {
    const bool cut = raw.size() > text_max;
    auto text = raw.substr(0, text_max);
    std::string out;
    while (!text.empty()) {
        const auto c = static_cast<unsigned char>(text[0]);
        const auto length = utf8_length(text);
        if (length == 0) {
            out += "\\ufffd";
        } else if (c == '"' || c == '\\') {
            out += '\\';
            out += text[0];
        } else if (c == '\n') {
            out += "\\n";
        } else if (c == '\t') {
            out += "\\t";
        } else if (c == '\r') {
            out += "\\r";
        } else if (c < 0x20 || c == 0x7F ||
                   (c == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0)) {
            // C0, DEL and C1: a terminal would obey them.
            out += fmt::format("\\u{:04x}", c == 0xC2 ? static_cast<unsigned char>(text[1]) : c);
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return cut ? out + "..." : out;
}

bool needs_quotes(std::string_view text) {
    if (text.empty()) return true;
    for (const char c : text) {
        const auto u = static_cast<unsigned char>(c);
        if (u <= 0x20 || u >= 0x7F || c == '"' || c == '=' || c == '\\') return true;
    }
    return text.size() > text_max;
}

std::string value_text(log_format format, const log_field::value_type& value) {
    return std::visit(
        overloaded{
            [&](std::string_view v) {
                if (format == log_format::text && !needs_quotes(v)) return std::string{v};
                return '"' + escaped(v) + '"';
            },
            [](bool v) { return std::string{v ? "true" : "false"}; },
            [](double v) { return std::isfinite(v) ? fmt::format("{}", v) : std::string{"null"}; },
            [](auto v) { return fmt::format("{}", v); }},
        value);
}

std::string stamp(policy::time_point at) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(at);
    const auto ms = (at - seconds).count();
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                       ms);
}

policy::time_point system_now() {
    return std::chrono::time_point_cast<policy::duration>(std::chrono::system_clock::now());
}

}  // namespace

std::size_t utf8_length(std::string_view text) noexcept {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto c = at(0);
    if (c < 0x80) return 1;
    const std::size_t n = c >= 0xC2 && c < 0xE0   ? 2
                          : c >= 0xE0 && c < 0xF0 ? 3
                          : c >= 0xF0 && c < 0xF5 ? 4
                                                  : 0;
    if (n == 0 || text.size() < n) return 0;
    for (std::size_t i = 1; i < n; ++i) {
        if ((at(i) & 0xC0U) != 0x80) return 0;
    }
    // Overlong forms, surrogates and what lies beyond U+10FFFF.
    if ((c == 0xE0 && at(1) < 0xA0) || (c == 0xED && at(1) >= 0xA0)) return 0;
    if ((c == 0xF0 && at(1) < 0x90) || (c == 0xF4 && at(1) >= 0x90)) return 0;
    return n;
}

std::string valid_utf8(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const auto length = utf8_length(text);
        out += length == 0 ? std::string_view{"\xEF\xBF\xBD"} : text.substr(0, length);
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return out;
}

std::string_view to_string(log_level level) noexcept {
    switch (level) {
        case log_level::trace:
            return "trace";
        case log_level::debug:
            return "debug";
        case log_level::info:
            return "info";
        case log_level::warn:
            return "warn";
        case log_level::error:
            return "error";
    }
    return "?";
}

log_level level_from(std::string_view word) noexcept {
    for (const auto level :
         {log_level::trace, log_level::debug, log_level::warn, log_level::error}) {
        if (to_string(level) == word) return level;
    }
    return log_level::info;
}

log_format format_from(std::string_view word) noexcept {
    if (word == "text") return log_format::text;
    if (word == "json") return log_format::json;
    return isatty(STDERR_FILENO) != 0 ? log_format::text : log_format::json;
}

std::string format_event(log_format format,
                         policy::time_point at,
                         log_level level,
                         std::string_view event,
                         log_fields fields,
                         std::uint64_t suppressed) {
    std::string out;
    const bool json = format == log_format::json;
    if (json) {
        out = fmt::format(R"({{"time":"{}","level":"{}","event":"{}")",
                          stamp(at),
                          to_string(level),
                          escaped(event));
    } else {
        out = fmt::format("{} {:<5} {}", stamp(at), to_string(level), escaped(event));
    }
    const auto add = [&](std::string_view key, const log_field::value_type& value) {
        const auto text = value_text(format, value);
        out += json ? fmt::format(R"(,"{}":{})", escaped(key), text)
                    : fmt::format(" {}={}", escaped(key), text);
    };
    for (const auto& f : fields)
        add(f.key, f.value);
    if (suppressed > 0) add("suppressed", suppressed);
    if (json) out += '}';
    return out;
}

struct event_log::state {
    struct rate {
        policy::time_point began{};
        int seen{};
        std::uint64_t suppressed{};
    };
    log_options options;
    std::atomic<log_level> level;
    std::shared_ptr<spdlog::logger> out;
    std::mutex mutex;
    std::map<std::string, rate, std::less<>> rates;
    std::atomic<std::uint64_t> suppressed_total{0};

    // Nothing: be silent. Otherwise how many were left out since the last line of this kind.
    std::optional<std::uint64_t> admit(std::string kind, policy::time_point at) {
        const std::lock_guard lock{mutex};
        if (rates.size() >= kinds_max && !rates.contains(kind)) {
            std::erase_if(rates,
                          [&](const auto& r) { return at - r.second.began >= options.span; });
            if (rates.size() >= kinds_max) kind = "...";  // all further kinds share one rate
        }
        auto& r = rates[kind];
        if (r.seen == 0 || at - r.began >= options.span || at < r.began) {
            const auto left_out = r.suppressed;
            r = {at, 1, 0};
            return left_out;
        }
        if (++r.seen <= options.burst) return 0;
        ++r.suppressed;
        suppressed_total.fetch_add(1, std::memory_order_relaxed);
        return std::nullopt;
    }
};

event_log::event_log(log_options options) : state_{std::make_unique<state>()} {
    if (!options.now) options.now = system_now;
    if (!options.to) options.to = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    state_->level = options.level;
    state_->out = std::make_shared<spdlog::logger>("hotlane", options.to);
    state_->out->set_pattern("%v");
    state_->out->set_level(spdlog::level::trace);  // levels are decided here
    state_->out->flush_on(spdlog::level::trace);
    state_->options = std::move(options);
}

event_log::~event_log() = default;

void event_log::set_level(log_level level) noexcept {
    state_->level = level;
}
bool event_log::enabled(log_level level) const noexcept {
    return level >= state_->level.load();
}
std::uint64_t event_log::suppressed_total() const noexcept {
    return state_->suppressed_total;
}

void event_log::event(log_level level, std::string_view name, log_fields fields) {
    if (!enabled(level)) return;
    const auto at = state_->options.now();
    std::string kind{name};
    for (const auto& f : fields) {
        const auto* tool = std::get_if<std::string_view>(&f.value);
        if (f.key == "tool" && tool != nullptr) kind += fmt::format("|{}", *tool);
    }
    const auto left_out = state_->admit(std::move(kind), at);
    if (!left_out) return;
    const auto line = format_event(state_->options.format, at, level, name, fields, *left_out);
    state_->out->log(spdlog::level::info, spdlog::string_view_t{line.data(), line.size()});
}

}  // namespace hotlane::metrics
