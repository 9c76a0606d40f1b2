#include "router/move/trial.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "router/move/convert.hpp"
#include "router/move/marker.hpp"
#include "router/sql/facts.hpp"
#include "router/sql/lexer.hpp"

namespace hotlane::move {
namespace {

constexpr std::string_view too_long = "54000";  // program_limit_exceeded: an index entry

bool can_raise(const std::string& check) {
    if (check.find_first_of("/%") != std::string::npos || check.find("::") != std::string::npos)
        return true;
    const auto tokens = sql::tokenize(check, sql::dialect::engine);
    return std::any_of(tokens.begin(), tokens.end(), [&](const sql::token& t) {
        return sql::is_word(check, t, "cast") || sql::is_word(check, t, "substr") ||
               sql::is_word(check, t, "sqrt") || sql::is_word(check, t, "ln") ||
               sql::is_word(check, t, "log") || sql::is_word(check, t, "power");
    });
}

// As text, with a cast beside it: the column may be held in a type of its own.
param text_param(const column& c, const value& v) {
    if (c.as == held_as::plain) return make_param(c.type, v);
    param out{param_type::text, std::nullopt};
    if (v.is_null) return out;
    std::string text;
    put_copy_value(text, value_type::blob == c.type ? value_type::text : c.type, c.as, v);
    out.value = c.as == held_as::json ? std::string(v.bytes) : text;
    return out;
}

}  // namespace

bool may_raise(const table& t) {
    if (std::any_of(t.checks.begin(), t.checks.end(), can_raise)) return true;
    return std::any_of(t.columns.begin(), t.columns.end(), [](const column& c) {
        return std::any_of(c.checks.begin(), c.checks.end(), can_raise);
    });
}

row_trial::row_trial(home_link& postgres, const table& t, std::string schema, trial_limits limits)
    : postgres_(postgres),
      t_(t),
      schema_(std::move(schema)),
      limits_(limits),
      every_row_(may_raise(t)) {
    const auto add_key = [&](const std::vector<std::string>& names) {
        std::vector<std::size_t> key;
        for (std::size_t i = 0; i < t.columns.size(); ++i)
            if (std::find(names.begin(), names.end(), t.columns[i].name) != names.end())
                key.push_back(i);
        if (!key.empty()) keys_.push_back(std::move(key));
    };
    add_key(t.key);
    for (const auto& u : t.uniques)
        add_key(u);
    for (const auto& c : t.columns)
        if (c.unique) add_key({c.name});
}

bool row_trial::wanted(const std::vector<value>& values) const {
    if (every_row_) return true;
    return std::any_of(keys_.begin(), keys_.end(), [&](const std::vector<std::size_t>& key) {
        std::size_t bytes = 0;
        for (const auto i : key)
            bytes += values[i].bytes.size();
        return bytes > limits_.long_key;
    });
}

void row_trial::add(const std::vector<value>& values) {
    if (refusals_.size() >= limits_.refusals_max || !postgres_.alive() || !wanted(values)) return;
    if (tried_ >= limits_.rows_max) {
        left_ = true;
        return;
    }
    ++tried_;
    tried_row one;
    for (std::size_t i = 0; i < values.size(); ++i) {
        one.params.push_back(text_param(t_.columns[i], values[i]));
        const auto& name = t_.columns[i].name;
        if (std::find(t_.key.begin(), t_.key.end(), name) == t_.key.end()) continue;
        const auto text = one.params.back().value.value_or("NULL").substr(0, 40);
        one.name += fmt::format("{}{} = {}",
                                one.name.empty() ? "" : ", ",
                                name,
                                is_valid_utf8(text) ? text : "(bytes)");
    }
    rows_.push_back(std::move(one));
    if (rows_.size() >= limits_.batch_rows) finish();
}

void row_trial::finish() {
    if (!rows_.empty()) try_rows(0, rows_.size());
    rows_.clear();
}

answer<void> row_trial::insert(std::size_t from, std::size_t to) {
    std::string columns, sets;
    for (const auto& c : t_.columns)
        columns += (columns.empty() ? "" : ", ") + sql::quote_identifier(c.name);
    std::vector<param> params;
    for (std::size_t r = from; r < to; ++r) {
        sets += sets.empty() ? "(" : ", (";
        for (std::size_t i = 0; i < t_.columns.size(); ++i) {
            params.push_back(rows_[r].params[i]);
            sets += fmt::format("{}${}", i == 0 ? "" : ", ", params.size());
            if (const auto as = t_.columns[i].as; as != held_as::plain)
                sets += fmt::format("::text::{}", to_string(as));
        }
        sets += ")";
    }
    auto put = postgres_.exec(fmt::format("INSERT INTO {}.{} ({}) VALUES {}",
                                          sql::quote_identifier(schema_),
                                          sql::quote_identifier(t_.name),
                                          columns,
                                          sets),
                              params);
    if (!put) return tl::unexpected(put.error());
    return {};
}

// Halves what was refused until one row is left.
void row_trial::try_rows(std::size_t from, std::size_t to) {
    constexpr std::size_t parameters_max = 10'000;
    const bool fits = (to - from) * t_.columns.size() <= parameters_max;
    if (refusals_.size() >= limits_.refusals_max || !postgres_.alive()) return;
    if (fits) {
        if (!send(postgres_, "SAVEPOINT hotlane_trial")) return;
        const auto put = insert(from, to);
        if (put || put.error().what == fate::unknown) return;
        if (!send(postgres_, "ROLLBACK TO SAVEPOINT hotlane_trial")) return;
        if (to - from == 1) {
            const bool is_long = put.error().sqlstate == too_long;
            refusals_.push_back(
                {is_long ? "key_too_long" : "row_refused",
                 fmt::format("table \"{}\": PostgreSQL refuses the row where {}: {}",
                             t_.name,
                             rows_[from].name.empty() ? "(no key)" : rows_[from].name,
                             put.error().message),
                 is_long ? "shorten the value, or declare no UNIQUE or key over it"
                         : "mend or delete the row, or change the CHECK"});
            return;
        }
    }
    const std::size_t middle = from + (to - from) / 2;
    try_rows(from, middle);
    try_rows(middle, to);
}

}  // namespace hotlane::move
