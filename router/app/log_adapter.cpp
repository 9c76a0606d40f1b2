#include "router/app/log_adapter.hpp"

#include <array>
#include <deque>
#include <utility>
#include <vector>

namespace hotlane::app {

namespace {

using nlohmann::json;

constexpr std::size_t fields_max = 32;

// The log takes an initializer list, which cannot be made as long as one likes at run time: one
// function for each length.
template <std::size_t... I>
void emit(metrics::event_log& to,
          metrics::log_level level,
          std::string_view event,
          const std::vector<metrics::log_field>& fields,
          std::index_sequence<I...>) {
    to.event(level, event, {fields[I]...});
}

using emitter = void (*)(metrics::event_log&,
                         metrics::log_level,
                         std::string_view,
                         const std::vector<metrics::log_field>&);

template <std::size_t N>
void emit_n(metrics::event_log& to,
            metrics::log_level level,
            std::string_view event,
            const std::vector<metrics::log_field>& fields) {
    emit(to, level, event, fields, std::make_index_sequence<N>{});
}

template <std::size_t... N>
constexpr std::array<emitter, sizeof...(N)> emitters(std::index_sequence<N...>) {
    return {emit_n<N>...};
}

metrics::log_level level_of(control::severity level) {
    switch (level) {
        case control::severity::debug:
            return metrics::log_level::debug;
        case control::severity::info:
            return metrics::log_level::info;
        case control::severity::warning:
            return metrics::log_level::warn;
        case control::severity::error:
            return metrics::log_level::error;
    }
    return metrics::log_level::info;
}

// `texts` holds what the field's view looks at.
metrics::log_field field(const std::string& key,
                         const json& value,
                         std::deque<std::string>& texts) {
    if (value.is_boolean()) return {key, value.get<bool>()};
    if (value.is_number_unsigned()) return {key, value.get<std::uint64_t>()};
    if (value.is_number_integer()) return {key, value.get<std::int64_t>()};
    if (value.is_number_float()) return {key, value.get<double>()};
    texts.push_back(value.is_string() ? value.get<std::string>()
                                      : value.dump(-1, ' ', false, json::error_handler_t::replace));
    return {key, std::string_view(texts.back())};
}

}  // namespace

control::event_log log_into(metrics::event_log& to) {
    return [&to](control::severity level, std::string_view event, const json& fields) {
        static constexpr auto by_length = emitters(std::make_index_sequence<fields_max + 1>{});
        if (!to.enabled(level_of(level))) return;
        std::deque<std::string> texts;
        std::vector<metrics::log_field> list;
        for (const auto& [key, value] : fields.items()) {
            if (value.is_null() || list.size() == fields_max) continue;
            list.push_back(field(key, value, texts));
        }
        by_length[list.size()](to, level_of(level), event, list);
    };
}

}  // namespace hotlane::app
