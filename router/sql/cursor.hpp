// A place in a token list, and the small steps that a reader of DDL takes. Private to router/sql.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "router/sql/lexer.hpp"

namespace hotlane::sql {

class cursor {
  public:
    explicit cursor(std::string_view sql)
        : sql_(sql), tokens_(tokenize(sql, dialect::engine)), last_(tokens_.size()) {
        while (last_ > 0 && tokens_[last_ - 1].what == lexeme::semicolon)
            --last_;
    }

    bool at_end() const { return at_ >= last_; }
    std::size_t place() const { return at_; }
    void go_back(std::size_t place) { at_ = place; }
    bool is(std::string_view word, std::size_t ahead = 0) const {
        return at_ + ahead < last_ && is_word(sql_, tokens_[at_ + ahead], word);
    }
    bool is(lexeme what, std::size_t ahead = 0) const {
        return at_ + ahead < last_ && tokens_[at_ + ahead].what == what;
    }
    bool is_any(std::initializer_list<std::string_view> words) const {
        for (const std::string_view word : words)
            if (is(word)) return true;
        return false;
    }
    bool is_name() const { return is(lexeme::word) || is(lexeme::quoted); }

    // All of the words, in order, or none.
    bool skip(std::initializer_list<std::string_view> words) {
        std::size_t ahead = 0;
        for (const std::string_view word : words)
            if (!is(word, ahead++)) return false;
        at_ += words.size();
        return true;
    }
    bool skip(lexeme what) {
        if (!is(what)) return false;
        ++at_;
        return true;
    }
    void next() {
        if (!at_end()) ++at_;
    }

    // One token, or everything up to the parenthesis that closes this one.
    void next_balanced() {
        if (!is(lexeme::open)) {
            next();
            return;
        }
        std::size_t depth = 0;
        do {
            if (is(lexeme::open)) ++depth;
            if (is(lexeme::close)) --depth;
            next();
        } while (depth > 0 && !at_end());
    }

    // To the next comma or closing parenthesis of this level.
    void to_element_end() {
        while (!at_end() && !is(lexeme::comma) && !is(lexeme::close))
            next_balanced();
    }

    std::string name() {
        if (!is_name()) return {};
        return identifier(sql_, tokens_[at_++]);
    }
    // The name at the cursor with its case kept.
    std::string written() const {
        if (!is_name()) return {};
        const token& t = tokens_[at_];
        return t.what == lexeme::quoted ? identifier(sql_, t) : std::string(text_of(sql_, t));
    }

    // The text from a place up to the cursor, as written.
    std::string since(std::size_t place) const {
        if (place >= at_) return {};
        const std::uint32_t begin = tokens_[place].begin;
        return std::string(sql_.substr(begin, tokens_[at_ - 1].end - begin));
    }
    // The text inside the parentheses at the cursor; the cursor goes behind them.
    std::string inside() {
        const std::size_t open = at_;
        next_balanced();
        if (at_ < open + 2) return {};
        const std::uint32_t begin = tokens_[open].end;
        std::string_view text = sql_.substr(begin, tokens_[at_ - 1].begin - begin);
        const std::size_t first = text.find_first_not_of(" \t\r\n");
        if (first == std::string_view::npos) return {};
        return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first));
    }
    // No unterminated quote, no byte that is not SQL, and parentheses that match.
    bool is_sound() const {
        std::size_t depth = 0;
        for (const token& t : tokens_) {
            if (t.what == lexeme::bad) return false;
            if (t.what == lexeme::open) ++depth;
            if (t.what == lexeme::close && depth-- == 0) return false;
        }
        return depth == 0;
    }

  private:
    std::string_view sql_;
    std::vector<token> tokens_;
    std::size_t at_{0};
    std::size_t last_;
};

struct qualified_name {
    std::string name;     // "t", or "s.t" if a schema other than public is named
    std::string written;  // the last part, case kept
};
qualified_name read_name(cursor& at);

}  // namespace hotlane::sql
