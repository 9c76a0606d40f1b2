#include "router/sql/lexer.hpp"

#include <algorithm>
#include <array>

namespace hotlane::sql {
namespace {

// What a byte may be, looked up: this runs for every byte of every statement that is new.
enum : std::uint8_t { space = 1, digit = 2, letter = 4, continues = 8, operates = 16 };

constexpr std::array<std::uint8_t, 256> classes() {
    std::array<std::uint8_t, 256> of{};
    const auto add = [&of](std::string_view bytes, std::uint8_t what) {
        for (const char c : bytes)
            of[static_cast<unsigned char>(c)] |= what;
    };
    for (unsigned c = 0; c < 256; ++c) {
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
        if (is_letter) of[c] = letter | continues;
    }
    add(" \t\n\r\f\v", space);
    add("0123456789", digit | continues);
    add("_", letter | continues);
    add("$", continues);
    add("+-*/<>=~!@#%^&|`?", operates);
    return of;
}
constexpr auto class_of = classes();

bool is(char c, std::uint8_t what) {
    return (class_of[static_cast<unsigned char>(c)] & what) != 0;
}
bool is_space(char c) {
    return is(c, space);
}
bool is_digit(char c) {
    return is(c, digit);
}
bool starts_word(char c) {
    return is(c, letter);
}
bool continues_word(char c) {
    return is(c, continues);
}
bool is_operator(char c) {
    return is(c, operates);
}
char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

class scanner {
  public:
    scanner(std::string_view sql, dialect rules) : sql_(sql), rules_(rules) {}

    void run(std::vector<token>& out) {
        out.clear();
        out.reserve(sql_.size() / 5 + 4);
        while (skip_blank()) {
            const std::size_t begin = at_;
            const lexeme what = next();
            at_ = std::min(at_, sql_.size());
            out.push_back(
                {what, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at_)});
        }
    }

    // The one token that begins at `at`, which is no blank.
    token one(std::size_t at) {
        at_ = at;
        const lexeme what = next();
        at_ = std::min(at_, sql_.size());
        return {what, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at_)};
    }

  private:
    char peek(std::size_t ahead = 0) const {
        return at_ + ahead < sql_.size() ? sql_[at_ + ahead] : '\0';
    }
    // These two bytes are next.
    bool starts(char first, char second) const { return peek() == first && peek(1) == second; }

    // Skips white space and comments; false at the end. An unterminated comment is left for
    // next(), which makes it a bad token.
    bool skip_blank() {
        while (at_ < sql_.size()) {
            if (is_space(sql_[at_])) {
                ++at_;
            } else if (starts('-', '-')) {
                while (at_ < sql_.size() && sql_[at_] != '\n' && sql_[at_] != '\r')
                    ++at_;
            } else if (starts('/', '*')) {
                const std::size_t end = comment_end();
                if (end == std::string_view::npos) return true;
                at_ = end;
            } else {
                return true;
            }
        }
        return false;
    }

    std::size_t comment_end() const {
        std::size_t depth = 0;
        for (std::size_t i = at_; i + 1 < sql_.size(); ++i) {
            if (sql_[i] == '/' && sql_[i + 1] == '*') {
                ++depth;
                ++i;
            } else if (sql_[i] == '*' && sql_[i + 1] == '/') {
                ++i;
                if (--depth == 0) return i + 1;
            }
        }
        return std::string_view::npos;
    }

    lexeme to_the_end() {
        at_ = sql_.size();
        return lexeme::bad;
    }

    // From an opening quote; a doubled closing quote stands for itself.
    lexeme quoted(char closing, bool backslashes, lexeme what) {
        for (++at_; at_ < sql_.size(); ++at_) {
            if (backslashes && sql_[at_] == '\\') {
                ++at_;
            } else if (sql_[at_] == closing) {
                if (peek(1) != closing) {
                    ++at_;
                    return what;
                }
                ++at_;
            }
        }
        return to_the_end();
    }

    lexeme dollar() {
        if (is_digit(peek(1))) {
            ++at_;
            while (is_digit(peek()))
                ++at_;
            return lexeme::parameter;
        }
        std::size_t i = at_ + 1;
        while (i < sql_.size() && continues_word(sql_[i]) && sql_[i] != '$')
            ++i;
        if (i >= sql_.size() || sql_[i] != '$') {
            ++at_;
            return lexeme::bad;
        }
        const std::string_view tag = sql_.substr(at_, i + 1 - at_);
        const std::size_t end = sql_.find(tag, i + 1);
        if (end == std::string_view::npos) return to_the_end();
        at_ = end + tag.size();
        return lexeme::string;
    }

    lexeme number() {
        if (peek() == '0' && (lower(peek(1)) == 'x')) {
            at_ += 2;
            while (is_digit(peek()) || (lower(peek()) >= 'a' && lower(peek()) <= 'f'))
                ++at_;
            return lexeme::number;
        }
        while (is_digit(peek()))
            ++at_;
        if (peek() == '.' && peek(1) != '.') {
            ++at_;
            while (is_digit(peek()))
                ++at_;
        }
        if (lower(peek()) == 'e') {
            const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 2U : 1U;
            if (is_digit(peek(sign))) {
                at_ += sign;
                while (is_digit(peek()))
                    ++at_;
            }
        }
        return lexeme::number;
    }

    lexeme word() {
        const char first = lower(peek());
        if (peek(1) == '\'' && (first == 'e' || first == 'b' || first == 'x' || first == 'n')) {
            ++at_;
            return quoted('\'', first == 'e', lexeme::string);
        }
        if (first == 'u' && peek(1) == '&' && (peek(2) == '\'' || peek(2) == '"')) {
            at_ += 2;
            return peek() == '"' ? quoted('"', false, lexeme::quoted)
                                 : quoted('\'', false, lexeme::string);
        }
        while (at_ < sql_.size() && continues_word(sql_[at_]))
            ++at_;
        return lexeme::word;
    }

    lexeme operators() {
        if (peek() == '?') {
            ++at_;
            return lexeme::parameter;
        }
        if (starts('/', '*')) return to_the_end();  // skip_blank() found no end
        while (is_operator(peek()) && peek() != '?' && !starts('-', '-') && !starts('/', '*')) {
            if (peek() == '`' && rules_ != dialect::postgres) break;
            ++at_;
        }
        return lexeme::op;
    }

    lexeme single(lexeme what) {
        ++at_;
        return what;
    }

    lexeme next() {
        const char c = peek();
        if (starts_word(c)) return word();
        if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
        if (c == '\'') return quoted('\'', false, lexeme::string);
        if (c == '"') return quoted('"', false, lexeme::quoted);
        if (c == '`' && rules_ != dialect::postgres) return quoted('`', false, lexeme::quoted);
        if (c == '[' && rules_ == dialect::engine) return quoted(']', false, lexeme::quoted);
        if (c == '$') return dollar();
        if (c == '(') return single(lexeme::open);
        if (c == ')') return single(lexeme::close);
        if (c == ',') return single(lexeme::comma);
        if (c == ';') return single(lexeme::semicolon);
        if (c == '.') return single(lexeme::dot);
        if (c == '[' || c == ']' || c == ':') return single(lexeme::op);
        if (is_operator(c)) return operators();
        return single(lexeme::bad);
    }

    std::string_view sql_;
    dialect rules_;
    std::size_t at_{0};
};

}  // namespace

void tokenize(std::string_view sql, std::vector<token>& into, dialect rules) {
    scanner(sql.substr(0, UINT32_MAX), rules).run(into);
}

std::vector<token> tokenize(std::string_view sql, dialect rules) {
    std::vector<token> out;
    tokenize(sql, out, rules);
    return out;
}

// The lexer keeps nothing in mind between two tokens, and what stands before a literal is read
// without regard to which digit or quoted text follows. So where all bytes around the literals are
// the same, the tokens are.
bool differs_in_literals_only(std::string_view known,
                              const std::vector<token>& tokens,
                              std::string_view sql,
                              std::vector<token>& into) {
    const auto is_plain = [](char first) { return first == '\'' || is_digit(first); };
    scanner lexer(sql, dialect::postgres);
    into.clear();
    std::size_t done = 0;  // of `known`
    std::size_t at = 0;    // of `sql`
    for (const token& t : tokens) {
        const auto shift = [&](std::size_t place) {
            return static_cast<std::uint32_t>(place - done + at);
        };
        const bool is_literal = t.what == lexeme::number || t.what == lexeme::string;
        if (!is_literal || !is_plain(known[t.begin])) {
            into.push_back({t.what, shift(t.begin), shift(t.end)});
            continue;
        }
        const auto before = known.substr(done, t.begin - done);
        if (sql.substr(at, before.size()) != before) return false;
        at += before.size();
        if (at >= sql.size() || !is_plain(sql[at])) return false;
        into.push_back(lexer.one(at));
        if (into.back().what != t.what) return false;
        at = into.back().end;
        done = t.end;
    }
    return sql.substr(at) == known.substr(done);
}

std::string lower_case(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), lower);
    return out;
}

std::string identifier(std::string_view sql, const token& t) {
    std::string_view text = text_of(sql, t);
    if (t.what != lexeme::quoted) return lower_case(text);
    if (text.front() != '"' && text.front() != '`' && text.front() != '[') text.remove_prefix(2);
    const char closing = text.front() == '[' ? ']' : text.front();
    std::string out;
    for (std::size_t i = 1; i + 1 < text.size(); ++i) {
        out.push_back(text[i]);
        if (text[i] == closing) ++i;
    }
    return out;
}

bool is_word(std::string_view sql, const token& t, std::string_view lower_text) {
    if (t.what != lexeme::word || t.end - t.begin != lower_text.size()) return false;
    return std::equal(
        lower_text.begin(), lower_text.end(), sql.begin() + t.begin, [](char a, char b) {
            return a == lower(b);
        });
}

}  // namespace hotlane::sql
