#include "router/admin/target.hpp"

namespace hotlane::admin {

namespace {

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

std::optional<std::string> decode(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out.push_back(text[i]);
            continue;
        }
        if (i + 2 >= text.size()) return std::nullopt;
        const int high = hex_value(text[i + 1]);
        const int low = hex_value(text[i + 2]);
        if (high < 0 || low < 0) return std::nullopt;
        out.push_back(static_cast<char>(high * 16 + low));
        i += 2;
    }
    return out;
}

bool is_unreserved(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.' || c == '~';
}

bool parse_query(std::string_view text, std::map<std::string, std::string>& out) {
    while (!text.empty()) {
        const auto end = text.find('&');
        const auto pair = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
        if (pair.empty()) continue;
        const auto equals = pair.find('=');
        const auto key = decode(pair.substr(0, equals));
        const auto value =
            decode(equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1));
        if (!key || !value) return false;
        out[*key] = *value;
    }
    return true;
}

}  // namespace

std::optional<target> parse_target(std::string_view text) {
    if (text.empty() || text[0] != '/') return std::nullopt;
    target out;
    const auto question = text.find('?');
    if (question != std::string_view::npos && !parse_query(text.substr(question + 1), out.query))
        return std::nullopt;
    auto path = text.substr(0, question);
    while (!path.empty()) {
        path.remove_prefix(1);  // the slash
        const auto end = path.find('/');
        const auto segment = decode(path.substr(0, end));
        if (!segment) return std::nullopt;
        if (!segment->empty()) out.segments.push_back(*segment);
        path = end == std::string_view::npos ? std::string_view{} : path.substr(end);
    }
    return out;
}

std::string encode_segment(std::string_view text) {
    static constexpr std::string_view digits = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        if (is_unreserved(c)) {
            out.push_back(c);
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        out.push_back('%');
        out.push_back(digits[byte >> 4U]);
        out.push_back(digits[byte & 15U]);
    }
    return out;
}

}  // namespace hotlane::admin
