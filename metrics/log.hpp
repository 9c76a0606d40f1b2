// Structured events: a stable name and fields, never a sentence with values baked in. Text for
// people on a terminal, one JSON object a line for machines. THREADS: any.
//
// The caller never passes a secret or a statement's text; nothing here could tell.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "policy/types.hpp"

namespace spdlog::sinks {
class sink;
}

namespace hotlane::metrics {

enum class log_level : std::uint8_t { trace, debug, info, warn, error };
std::string_view to_string(log_level level) noexcept;
log_level level_from(std::string_view word) noexcept;  // unknown: info

enum class log_format : std::uint8_t { text, json };
// "auto": text when standard error is a terminal.
log_format format_from(std::string_view word) noexcept;

struct log_field {
    using value_type = std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool>;
    std::string_view key;
    value_type value;

    log_field(std::string_view k, std::string_view v) : key{k}, value{v} {}
    log_field(std::string_view k, const std::string& v) : key{k}, value{std::string_view{v}} {}
    log_field(std::string_view k, const char* v) : key{k}, value{std::string_view{v}} {}
    log_field(std::string_view k, bool v) : key{k}, value{v} {}
    log_field(std::string_view k, double v) : key{k}, value{v} {}
    template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
    log_field(std::string_view k, T v) : key{k} {
        if constexpr (std::is_signed_v<T>) {
            value = static_cast<std::int64_t>(v);
        } else {
            value = static_cast<std::uint64_t>(v);
        }
    }
};
// From a list in braces, or from any row of fields that was put together.
class log_fields {
  public:
    log_fields() = default;
    log_fields(std::initializer_list<log_field> all) : all_{std::data(all), all.size()} {}
    log_fields(std::span<const log_field> all) : all_{all} {}
    [[nodiscard]] auto begin() const noexcept { return all_.begin(); }
    [[nodiscard]] auto end() const noexcept { return all_.end(); }
    [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

  private:
    std::span<const log_field> all_;
};

// One line without its newline. Pure.
std::string format_event(log_format format,
                         policy::time_point at,
                         log_level level,
                         std::string_view event,
                         log_fields fields,
                         std::uint64_t suppressed = 0);

// Text that is valid UTF-8, with what is not replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

struct log_options {
    log_level level{log_level::info};
    log_format format{log_format::text};
    std::function<policy::time_point()> now;  // default: the system's clock
    std::shared_ptr<spdlog::sinks::sink> to;  // default: standard error
    // The same event of the same tool (field `tool`): so many in a span, then counted in silence
    // until the span is over. Errors too: a loop that fails must not fill a disk.
    int burst{20};
    std::chrono::milliseconds span{10'000};
};

class event_log {
  public:
    explicit event_log(log_options options);
    ~event_log();
    event_log(const event_log&) = delete;
    event_log& operator=(const event_log&) = delete;

    void set_level(log_level level) noexcept;
    [[nodiscard]] bool enabled(log_level level) const noexcept;
    void event(log_level level, std::string_view name, log_fields fields = {});
    [[nodiscard]] std::uint64_t suppressed_total() const noexcept;

    void debug(std::string_view name, log_fields fields = {}) {
        event(log_level::debug, name, fields);
    }
    void info(std::string_view name, log_fields fields = {}) {
        event(log_level::info, name, fields);
    }
    void warn(std::string_view name, log_fields fields = {}) {
        event(log_level::warn, name, fields);
    }
    void error(std::string_view name, log_fields fields = {}) {
        event(log_level::error, name, fields);
    }

  private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace hotlane::metrics
