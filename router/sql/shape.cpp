#include "router/sql/shape.hpp"

#include <algorithm>

namespace hotlane::sql {
namespace {

constexpr std::string_view mark = " ?";

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_value(const token& t) {
    return t.what == lexeme::string || t.what == lexeme::number || t.what == lexeme::parameter;
}

bool ends_with(const std::string& text, std::string_view tail) {
    return text.size() >= tail.size() &&
           text.compare(text.size() - tail.size(), tail.size(), tail) == 0;
}
void drop(std::string& text, std::string_view tail) {
    text.resize(text.size() - tail.size());
}

}  // namespace

void shape_of(std::string_view sql, const std::vector<token>& tokens, std::string& out) {
    out.clear();
    out.reserve(sql.size() + tokens.size());
    for (const token& t : tokens) {
        if (t.what == lexeme::semicolon && out.empty()) continue;
        if (is_value(t)) {
            if (ends_with(out, " ? ,")) {
                drop(out, " ,");  // 1, 2, 3 becomes ?
            } else {
                out.append(mark);
            }
            continue;
        }
        out.push_back(' ');
        if (t.what == lexeme::word) {
            const auto from = out.size();
            out.append(text_of(sql, t));
            std::transform(out.begin() + static_cast<std::ptrdiff_t>(from),
                           out.end(),
                           out.begin() + static_cast<std::ptrdiff_t>(from),
                           lower);
        } else {
            out.append(text_of(sql, t));
        }
        if (t.what == lexeme::close && ends_with(out, " ( ? ) , ( ? )"))
            drop(out, " , ( ? )");  // (1, 2), (3, 4) becomes (?)
    }
    while (ends_with(out, " ;"))
        drop(out, " ;");
}

std::string shape_of(std::string_view sql, const std::vector<token>& tokens) {
    std::string out;
    shape_of(sql, tokens, out);
    return out;
}

std::uint64_t fingerprint_of(std::string_view shape) {
    std::uint64_t hash = 14'695'981'039'346'656'037ULL;
    for (const char c : shape) {
        hash ^= static_cast<unsigned char>(c);
        hash *= 1'099'511'628'211ULL;
    }
    return hash == 0 ? 1 : hash;
}

}  // namespace hotlane::sql
