#include "router/sql/row_key.hpp"

#include <algorithm>
#include <charconv>

namespace hotlane::sql {

namespace {

struct comparison {
    std::string column;
    const token* value{};
};

class where_reader {
  public:
    where_reader(std::string_view sql, const std::vector<token>& tokens)
        : sql_{sql}, tokens_{tokens} {}

    // The token behind the last WHERE outside parentheses; size(): there is none.
    [[nodiscard]] std::size_t begin_of_where() const {
        std::size_t found = tokens_.size();
        int depth = 0;
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            if (tokens_[i].what == lexeme::open) ++depth;
            if (tokens_[i].what == lexeme::close) --depth;
            if (depth == 0 && is_word(sql_, tokens_[i], "where")) found = i + 1;
        }
        return found;
    }

    // Empty: something else than comparisons stands there.
    std::vector<comparison> read(std::size_t at) {
        std::vector<comparison> out;
        while (true) {
            if (at < tokens_.size() && is_name(at) && at + 1 < tokens_.size() &&
                tokens_[at + 1].what == lexeme::dot)
                at += 2;
            if (at + 2 >= tokens_.size() || !is_name(at) || !is_equals(at + 1) || !is_value(at + 2))
                return {};
            out.push_back({identifier(sql_, tokens_[at]), &tokens_[at + 2]});
            at += 3;
            if (at == tokens_.size() || tokens_[at].what == lexeme::semicolon ||
                is_word(sql_, tokens_[at], "returning"))
                return out;
            if (!is_word(sql_, tokens_[at], "and")) return {};
            ++at;
        }
    }

    // Is this name written anywhere before `end`?
    [[nodiscard]] bool is_named_before(std::size_t end, const std::string& column) const {
        for (std::size_t i = 0; i < end; ++i)
            if (is_name(i) && identifier(sql_, tokens_[i]) == column) return true;
        return false;
    }

  private:
    [[nodiscard]] bool is_name(std::size_t at) const {
        return tokens_[at].what == lexeme::word || tokens_[at].what == lexeme::quoted;
    }
    [[nodiscard]] bool is_equals(std::size_t at) const {
        return tokens_[at].what == lexeme::op && text_of(sql_, tokens_[at]) == "=";
    }
    [[nodiscard]] bool is_value(std::size_t at) const {
        const auto what = tokens_[at].what;
        return what == lexeme::number || what == lexeme::string ||
               (what == lexeme::parameter && text_of(sql_, tokens_[at]).starts_with("$"));
    }

    std::string_view sql_;
    const std::vector<token>& tokens_;
};

bool has_word(std::string_view sql, const std::vector<token>& tokens, std::string_view word) {
    return std::any_of(
        tokens.begin(), tokens.end(), [&](const token& t) { return is_word(sql, t, word); });
}

// A quoted literal and a bare one may be the same value: '5' and 5.
std::string_view value_of(std::string_view sql, const token& t) {
    auto text = text_of(sql, t);
    if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'')
        text = text.substr(1, text.size() - 2);
    return text;
}

}  // namespace

std::uint64_t row_hash(std::uint64_t hash, std::string_view text) noexcept {
    constexpr std::uint64_t prime = 1'099'511'628'211ULL;
    for (const char c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * prime;
    return (hash ^ 0xffU) * prime;  // so that "a","b" and "ab","" differ
}

void find_row_key(std::string_view sql, const std::vector<token>& tokens, statement& of) {
    of.key_from = statement::keyed::unknown;
    of.key = 0;
    of.key_parameters.clear();
    if (!of.single_row_write || of.table.empty()) return;
    if (of.what == kind::insert) {
        // With ON CONFLICT it may be a row that is there.
        if (!has_word(sql, tokens, "conflict")) of.key_from = statement::keyed::new_row;
        return;
    }
    if (of.what != kind::update && of.what != kind::remove) return;
    where_reader where{sql, tokens};
    const auto begin = where.begin_of_where();
    std::uint64_t hash = row_hash(row_hash_begin, of.table);
    bool is_found = false;
    for (const auto& one : where.read(begin)) {
        if (where.is_named_before(begin, one.column)) continue;
        is_found = true;
        hash = row_hash(hash, one.column);
        if (one.value->what != lexeme::parameter) {
            hash = row_hash(hash, value_of(sql, *one.value));
            continue;
        }
        std::uint16_t number = 0;
        const auto digits = text_of(sql, *one.value).substr(1);
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
        if (number == 0) return;
        of.key_parameters.push_back(number);
    }
    if (!is_found) return;
    of.key = hash;
    of.key_from =
        of.key_parameters.empty() ? statement::keyed::literals : statement::keyed::parameters;
}

}  // namespace hotlane::sql
