// What a statement has done once the home says that it succeeded: parameters, pins, DDL, prepared
// statements. Nothing is believed before CommandComplete.
#include <algorithm>

#include "router/session/implementation.hpp"

namespace hotlane::session {
namespace {

std::string_view text_of(const sql::statement& statement, std::string_view sql) {
    const auto end = std::min<std::size_t>(statement.end, sql.size());
    const auto begin = std::min<std::size_t>(statement.begin, end);
    return sql.substr(begin, end - begin);
}

// Which statement the CommandComplete for this entry answers; null: nobody knows.
const sql::statement* completed_statement(const owed& entry) {
    const auto* facts = entry.what == owes::query    ? entry.facts.get()
                        : entry.statement != nullptr ? entry.statement->facts.get()
                                                     : nullptr;
    if (facts == nullptr) return nullptr;
    const auto& all = facts->statements;
    if (entry.what == owes::query) return entry.done < all.size() ? &all[entry.done] : nullptr;
    return all.size() == 1 ? &all.front() : nullptr;
}

}  // namespace

bool ends_block(sql::kind what) noexcept {
    return what == sql::kind::commit || what == sql::kind::rollback;
}

bool writes_data(const sql::statement& statement) noexcept {
    using sql::kind;
    static constexpr kind harmless[] = {kind::empty,
                                        kind::begin,
                                        kind::commit,
                                        kind::rollback,
                                        kind::savepoint,
                                        kind::release,
                                        kind::rollback_to,
                                        kind::set,
                                        kind::set_local,
                                        kind::reset,
                                        kind::show,
                                        kind::listen,
                                        kind::unlisten,
                                        kind::set_role,
                                        kind::set_transaction,
                                        kind::set_session_characteristics,
                                        kind::deallocate,
                                        kind::deallocate_all,
                                        kind::discard_all};
    return statement.may_write &&
           std::find(std::begin(harmless), std::end(harmless), statement.what) ==
               std::end(harmless);
}

// A CommandComplete for the front entry.
void session::implementation::command_complete(std::string_view tag) {
    auto& front = owed_.front();
    if (tally_.on()) tally_.completed(completed_statement(front), tag);
    note_after_error(tag);
    if (front.what == owes::query) {
        const auto index = front.done++;
        if (!front.facts || index >= front.facts->statements.size()) return;
        const auto facts = front.facts;  // what follows may clear what holds it
        const auto text = front.text;
        if (text && front.done == facts->statements.size()) statement_done(*facts, *text, {});
        succeeded(facts->statements[index], text ? std::string_view(*text) : "", tag);
    } else if (front.what == owes::execute && front.statement && front.statement->facts) {
        const auto statement = front.statement;
        statement_done(*statement->facts, statement->text->sql, statement->parameters());
        for (const auto& one : statement->facts->statements)
            succeeded(one, statement->text->sql, tag);
    } else if (front.what == owes::execute && !in_block_) {
        implicit_wrote_ = true;  // nobody knows what it was
    }
}

// The engine lets a block go on after an error, and its COMMIT commits; PostgreSQL does neither.
// Who relies on it is named before a move.
void session::implementation::note_after_error(std::string_view tag) {
    if (!in_block_ || link_kind_ != policy::home_kind::engine || owed_.front().hidden()) return;
    const bool rolls_back = tag.starts_with("ROLLBACK");  // to a savepoint, too: as on PostgreSQL
    const bool commits = tag.starts_with("COMMIT");
    // A COMMIT of nothing is the same at both homes.
    if (failed_once_ && !rolls_back && (!commits || changed_)) {
        env_.went_on_after_error(tag, !std::exchange(went_on_, true));
    }
    if (rolls_back) failed_once_ = false;
    if (commits) return forget_block();
    changed_ = changed_ || tag.starts_with("INSERT") || tag.starts_with("UPDATE") ||
               tag.starts_with("DELETE");
}

void session::implementation::statement_done(const sql::facts& facts,
                                             std::string_view sql,
                                             std::span<const std::uint32_t> parameters) {
    if (env_.wants_statement(facts.fingerprint))
        env_.statement_seen(facts.fingerprint, sql, parameters);
}

void session::implementation::succeeded(const sql::statement& statement,
                                        std::string_view sql,
                                        std::string_view tag) {
    using sql::kind;
    using change = pending_change::kind;
    const auto what = statement.what;
    if (what == kind::begin) {
        in_block_ = true;
        forget_block();
    } else if (what == kind::commit || what == kind::prepare_transaction) {
        // COMMIT of a failed transaction says ROLLBACK.
        if (tag.starts_with("ROLLBACK"))
            state_.rollback();
        else
            commit_state();
        committed_unready_ = committed_unready_ || (wrote_ && !tag.starts_with("ROLLBACK"));
        in_block_ = statement.chain;
    } else if (what == kind::rollback) {
        state_.rollback();
        in_block_ = statement.chain;
    } else if (what == kind::savepoint) {
        state_.note({.what = change::savepoint, .name = statement.name});
    } else if (what == kind::release) {
        state_.release(statement.name);
    } else if (what == kind::rollback_to) {
        state_.rollback_to(statement.name);
    } else if (what == kind::deallocate) {
        statements_.erase(statement.name);
    } else if (what == kind::deallocate_all) {
        clear_statements();
        state_.note({.what = change::drop_pin, .reason = pin::sql_prepare});
    } else if (what == kind::discard_all) {
        clear_statements();
        state_.note({.what = change::reset_all});
        state_.note({.what = change::clear_pins});
        asks_aftermath_ = false;
    } else if (what == kind::ddl && !statement.temporary) {
        state_.note({.what = change::ddl, .sql = std::string(text_of(statement, sql))});
    }
    parameter_set(statement, text_of(statement, sql));
    note_pins(statement);
    if (!in_block_ && writes_data(statement)) implicit_wrote_ = true;
    if (!in_block_ && what == kind::prepare_transaction) implicit_wrote_ = false;
}

void session::implementation::parameter_set(const sql::statement& statement, std::string_view sql) {
    using change = pending_change::kind;
    if (statement.what == sql::kind::set_local || statement.what == sql::kind::discard_all) return;
    if (statement.what == sql::kind::set_session_characteristics && !statement.parameter) {
        state_.note({.what = change::set,
                     .name = std::string(characteristics_key),
                     .sql = std::string(sql)});
        return;
    }
    if (!statement.parameter || statement.parameter->local) return;
    const auto& parameter = *statement.parameter;
    if (statement.what == sql::kind::reset || !parameter.value) {
        const bool all = parameter.name == "all";
        state_.note({.what = all ? change::reset_all : change::reset, .name = parameter.name});
    } else {
        state_.note({.what = change::set, .name = parameter.name, .sql = parameter.sql});
    }
}

// On the engine most of these do nothing, so they hold nobody there.
void session::implementation::note_pins(const sql::statement& statement) {
    using sql::kind;
    const auto add = [&](pin reason) {
        state_.note({.what = pending_change::kind::add_pin, .reason = reason});
    };
    if (statement.temporary) add(pin::temporary_object);
    if (statement.changes_session) add(pin::other);
    if (!is_pooled()) {
        // Its link is its own.
    } else if (statement.keeps_session || (statement.reads_sequence && !wrote_) ||
               (statement.uses_sequence && env_.do_sequences_matter())) {
        state_.pin_now(pin::session_function);
    }
    if (link_kind_ != policy::home_kind::postgres) return;
    if (statement.takes_advisory_lock) state_.pin_now(pin::advisory_lock);  // no rollback undoes it
    if (statement.what == kind::listen) add(pin::listen);
    if (statement.what == kind::unlisten && (statement.name.empty() || statement.name == "*"))
        state_.note({.what = pending_change::kind::drop_pin, .reason = pin::listen});
    if (statement.what == kind::declare_cursor_hold) add(pin::holdable_cursor);
    if (statement.what == kind::prepare) state_.pin_now(pin::sql_prepare);
    if (statement.what == kind::set_role) add(pin::role);
}

void session::implementation::commit_state() {
    state_.commit(ddl_);
    for (const auto& sql : ddl_)
        env_.ddl_seen(sql);
    ddl_.clear();
    if (state_.hit_limit()) env_.count_limit_hit("parameters_per_client");
}

void session::implementation::clear_statements() {
    statements_.clear();
    if (lent_) lent_->statements.clear();
    portals_.clear();
    unnamed_portal_.reset();
}

}  // namespace hotlane::session
