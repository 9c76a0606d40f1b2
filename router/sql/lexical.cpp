// Facts from the words alone, for text that PostgreSQL's parser refuses or that is too long for
// it. Everything that is not sure is said to write.
#include <algorithm>
#include <array>

#include "router/sql/analysis.hpp"
#include "router/sql/functions.hpp"

namespace hotlane::sql {
namespace {

struct leading_word {
    std::string_view word;
    kind what;
    bool may_write;
};
constexpr std::array leading_words = std::to_array<leading_word>({
    {"select", kind::select, true},       {"values", kind::select, true},
    {"table", kind::select, true},        {"with", kind::select, true},
    {"insert", kind::insert, true},       {"replace", kind::insert, true},
    {"update", kind::update, true},       {"delete", kind::remove, true},
    {"merge", kind::merge, true},         {"begin", kind::begin, false},
    {"start", kind::begin, false},        {"commit", kind::commit, true},
    {"end", kind::commit, true},          {"rollback", kind::rollback, false},
    {"abort", kind::rollback, false},     {"savepoint", kind::savepoint, false},
    {"release", kind::release, false},    {"set", kind::set, false},
    {"reset", kind::reset, false},        {"show", kind::show, false},
    {"explain", kind::explain, true},     {"create", kind::ddl, true},
    {"alter", kind::ddl, true},           {"drop", kind::ddl, true},
    {"comment", kind::ddl, true},         {"grant", kind::ddl, true},
    {"revoke", kind::ddl, true},          {"prepare", kind::prepare, true},
    {"execute", kind::execute, true},     {"deallocate", kind::deallocate, false},
    {"listen", kind::listen, false},      {"unlisten", kind::unlisten, false},
    {"notify", kind::notify, true},       {"fetch", kind::fetch, true},
    {"close", kind::close_cursor, false}, {"lock", kind::lock, true},
    {"call", kind::call, true},
});

class reader {
  public:
    reader(std::string_view sql, const std::vector<token>& tokens, token_span span)
        : sql_(sql), tokens_(tokens), span_(span) {}

    statement read() const {
        statement out;
        out.begin = tokens_[span_.first].begin;
        out.end = tokens_[span_.last - 1].end;
        const auto* row =
            std::find_if(leading_words.begin(), leading_words.end(), [this](const leading_word& r) {
                return is(span_.first, r.word);
            });
        out.names_no_column = out.modifies = true;  // nobody knows
        if (row == leading_words.end() || has_bad()) return out;
        out.what = row->what;
        out.may_write = row->may_write;
        note_functions(out);
        refine(out);
        out.temporary = out.temporary || (out.what == kind::ddl && (is_temporary(1)));
        out.table = written_table(out.what);
        out.names_no_column = may_name_no_column(out.what);
        return out;
    }

  private:
    bool is(std::size_t i, std::string_view word) const {
        return i < span_.last && is_word(sql_, tokens_[i], word);
    }
    bool has(std::string_view word) const {
        for (std::size_t i = span_.first; i < span_.last; ++i)
            if (is(i, word)) return true;
        return false;
    }
    // By its words only: UPDATE always names one, and what has no FROM has no table.
    bool may_name_no_column(kind what) const {
        if (what == kind::select || what == kind::explain) return has("from");
        return what == kind::insert || what == kind::remove || what == kind::merge ||
               what == kind::ddl || what == kind::other || what == kind::execute ||
               what == kind::call;
    }
    bool has_bad() const {
        for (std::size_t i = span_.first; i < span_.last; ++i)
            if (tokens_[i].what == lexeme::bad) return true;
        return false;
    }
    bool is_temporary(std::size_t offset) const {
        return is(span_.first + offset, "temp") || is(span_.first + offset, "temporary") ||
               has("pg_temp");
    }

    // What an identifier before a parenthesis calls; key words that are no function count as pure.
    function_class called(std::size_t i) const {
        static constexpr std::array no_function = std::to_array<std::string_view>(
            {"select",  "values",   "in",      "and",     "or",        "not",    "where",  "from",
             "on",      "as",       "exists",  "any",     "all",       "some",   "cast",   "case",
             "when",    "then",     "else",    "between", "by",        "having", "limit",  "offset",
             "using",   "distinct", "union",   "except",  "intersect", "join",   "filter", "over",
             "numeric", "decimal",  "varchar", "char",    "returning", "glob",   "is",     "set"});
        if (i > span_.first && tokens_[i - 1].what == lexeme::dot) return function_class::unknown;
        if (tokens_[i].what == lexeme::quoted) return function_class::unknown;
        const std::string name = identifier(sql_, tokens_[i]);
        if (std::find(no_function.begin(), no_function.end(), name) != no_function.end())
            return function_class::pure;
        return classify_function(name);
    }

    bool note_functions(statement& out) const {
        bool pure = true;
        for (std::size_t i = span_.first; i + 1 < span_.last; ++i) {
            const bool named = tokens_[i].what == lexeme::word || tokens_[i].what == lexeme::quoted;
            if (!named || tokens_[i + 1].what != lexeme::open) continue;
            const function_class what = called(i);
            pure = pure && what == function_class::pure;
            if (what == function_class::session_lock) out.takes_advisory_lock = true;
            if (what == function_class::set_config) out.changes_session = true;
        }
        return pure;
    }

    bool only_reads() const {
        for (const std::string_view word :
             {"into", "insert", "update", "delete", "merge", "replace", "share", "for"})
            if (has(word)) return false;
        statement ignored;
        return note_functions(ignored);
    }

    void refine(statement& out) const {
        const std::size_t first = span_.first;
        if (out.what == kind::select || out.what == kind::explain) {
            if (only_reads()) out.may_write = false;
            if (has("into")) out.what = kind::ddl;
            if (has("into") && (has("temp") || has("temporary"))) out.temporary = true;
        } else if (out.what == kind::begin) {
            out.names_isolation = has("isolation");
        } else if (out.what == kind::commit || out.what == kind::rollback) {
            out.chain = has("chain") && !has("no");
            if (has("prepared")) out.what = kind::other;
            if (out.what == kind::rollback && has("to")) name_after(out, kind::rollback_to, "to");
        } else if (out.what == kind::savepoint) {
            out.name = name_at(first + 1);
        } else if (out.what == kind::release) {
            out.name = name_at(first + (is(first + 1, "savepoint") ? 2U : 1U));
        } else if (out.what == kind::set || out.what == kind::reset) {
            refine_set(out);
        } else if (out.what == kind::prepare && is(first + 1, "transaction")) {
            out.what = kind::prepare_transaction;
        } else if (out.what == kind::deallocate && is(span_.last - 1, "all")) {
            out.what = kind::deallocate_all;
        }
    }

    // A SET that the parser refuses is not replayed: nobody knows what it does.
    void refine_set(statement& out) const {
        out.changes_session = true;
        out.names_isolation = has("isolation") || has("transaction_isolation") ||
                              has("default_transaction_isolation");
        if (has("role") || has("authorization")) out.what = kind::set_role;
    }

    void name_after(statement& out, kind what, std::string_view word) const {
        out.what = what;
        for (std::size_t i = span_.first; i < span_.last; ++i) {
            if (!is(i, word)) continue;
            out.name = name_at(i + (is(i + 1, "savepoint") ? 2U : 1U));
            return;
        }
    }

    std::string name_at(std::size_t i) const {
        if (i >= span_.last) return {};
        const lexeme what = tokens_[i].what;
        if (what != lexeme::word && what != lexeme::quoted) return {};
        std::string name = identifier(sql_, tokens_[i]);
        if (i + 2 < span_.last && tokens_[i + 1].what == lexeme::dot) {
            const std::string inner = name_at(i + 2);
            return name == "public" ? inner : name + "." + inner;
        }
        return name;
    }

    std::size_t after_words(std::size_t i, std::initializer_list<std::string_view> words) const {
        bool again = true;
        while (again) {
            again = false;
            for (const std::string_view word : words)
                if (is(i, word)) {
                    ++i;
                    again = true;
                }
        }
        return i;
    }

    std::string written_table(kind what) const {
        const std::size_t next = span_.first + 1;
        if (what == kind::insert) {
            return name_at(after_words(
                next, {"or", "replace", "ignore", "abort", "fail", "rollback", "into"}));
        }
        if (what == kind::update)
            return name_at(after_words(
                next, {"or", "replace", "ignore", "abort", "fail", "rollback", "only"}));
        if (what == kind::remove) return name_at(after_words(next, {"from", "only"}));
        if (what == kind::ddl && !is(span_.first, "select") && !is(span_.first, "with"))
            return ddl_table(next);
        return {};
    }

    std::string ddl_table(std::size_t next) const {
        std::size_t i = after_words(next, {"temp", "temporary", "virtual", "unlogged", "unique"});
        if (is(i, "index")) {
            for (std::size_t k = i; k < span_.last; ++k)
                if (is(k, "on")) return name_at(after_words(k + 1, {"only"}));
            return {};
        }
        if (!is(i, "table") && !is(i, "view")) return {};
        i = after_words(i + 1, {"if", "not", "exists", "only"});
        return name_at(i);
    }

    std::string_view sql_;
    const std::vector<token>& tokens_;
    token_span span_;
};

}  // namespace

statement lexical_statement(std::string_view sql,
                            const std::vector<token>& tokens,
                            token_span span) {
    return reader(sql, tokens, span).read();
}

}  // namespace hotlane::sql
