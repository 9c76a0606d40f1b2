#include <cassert>

#include "router/sql/facts.hpp"

namespace hotlane::sql {
namespace {

std::string doubled(std::string_view text, char quote) {
    assert(text.find('\0') == std::string_view::npos);
    std::string out;
    out.reserve(text.size() + 2);
    out.push_back(quote);
    for (const char c : text) {
        if (c == quote) out.push_back(quote);
        out.push_back(c);
    }
    out.push_back(quote);
    return out;
}

}  // namespace

std::string quote_identifier(std::string_view name) {
    return doubled(name, '"');
}
std::string quote_literal(std::string_view text) {
    return doubled(text, '\'');
}

}  // namespace hotlane::sql
