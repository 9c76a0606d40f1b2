// Rule 9: the engine gives snapshot isolation, so on PostgreSQL what names no level itself begins
// as REPEATABLE READ where a lost update would else be possible. Single-row writes that read no
// other row stay at READ COMMITTED, where PostgreSQL reads the row again and needs no retry.
//
// The level is switched by a hidden SET in the same write as the statement, and only when the link
// is not already there. A client that sets a default of its own is left alone.
#include <algorithm>

#include "router/session/implementation.hpp"

namespace hotlane::session {
namespace {

constexpr std::string_view parameter = "default_transaction_isolation";

std::string_view switch_to(level which) {
    switch (which) {
        case level::unknown:
        case level::read_committed:
            return "SET default_transaction_isolation = 'read committed'";
        case level::repeatable_read:
            return "SET default_transaction_isolation = 'repeatable read'";
        case level::serializable:
            return "SET default_transaction_isolation = 'serializable'";
    }
    return "SET default_transaction_isolation = 'repeatable read'";
}

// Of one autocommit statement; DDL and settings lose no update at any level.
std::optional<level> level_for_statement(const sql::statement& statement) {
    if (statement.what == sql::kind::begin)
        return statement.names_isolation ? std::nullopt : std::optional(level::repeatable_read);
    if (!writes_data(statement) || statement.what == sql::kind::ddl) return std::nullopt;
    return statement.single_row_write ? level::read_committed : level::repeatable_read;
}

}  // namespace

bool is_continuation(char tag) noexcept {
    using namespace wire::tag_f;
    return tag == copy_data || tag == copy_done || tag == copy_fail || tag == flush;
}

void session::implementation::note_startup_isolation() {
    startup_level_ = identity_->sets(parameter);
}

bool session::implementation::client_sets_level() const {
    if (startup_level_) return true;
    const auto& all = state_.parameters();
    return std::any_of(all.begin(), all.end(), [](const auto& one) {
        return one.first == parameter || one.first == characteristics_key;
    });
}

// A statement that may change the link's default, as it is sent.
void session::implementation::note_isolation(const sql::statement& statement) {
    const bool named = statement.parameter && (statement.parameter->name == parameter ||
                                               statement.parameter->name == "all");
    if (named || statement.what == sql::kind::discard_all ||
        statement.what == sql::kind::set_session_characteristics || statement.changes_session) {
        link_level_ = level::unknown;
        level_in_flight_ = true;
    }
    // A rollback undoes a SET, a hidden one sent inside the block included.
    if (statement.what == sql::kind::rollback && level_in_flight_) link_level_ = level::unknown;
}

void session::implementation::set_isolation(const client_frame& frame) {
    if (link_kind_ != policy::home_kind::postgres || client_sets_level()) return;
    const auto wanted = level_for(frame);
    if (!wanted || *wanted == link_level_) return;
    link_level_ = *wanted;
    wire::append_query(to_link_.out(), switch_to(*wanted));
    owed entry;
    entry.what = owes::query;
    entry.from = sender::isolation;
    owed_.push(std::move(entry));
    if (lent_)
        lent_->statements.drop_unnamed();  // what is used again is prepared again
    else
        restore_unnamed(frame);
}

// A simple query drops the unnamed statement, ours too. A client that will use the one that it has
// must find it.
void session::implementation::restore_unnamed(const client_frame& frame) {
    const auto unnamed = statements_.expect("");
    const bool replaced = frame.tag == wire::tag_f::parse && frame.body().starts_with('\0');
    if (!unnamed || replaced || frame.tag == wire::tag_f::query) return;
    auto& out = to_link_.out();
    wire::append_parse(out, "", unnamed->text->sql, unnamed->parameters());
    wire::append_empty(out, wire::tag_f::sync);
    owed entry;
    entry.what = owes::parse;
    entry.from = sender::replay;
    entry.statement = unnamed;
    owed_.push(entry);
    entry.what = owes::sync;
    entry.statement.reset();
    owed_.push(std::move(entry));
}

std::optional<level> session::implementation::level_for(const client_frame& frame) {
    switch (tool_.isolation) {
        case isolation_rule::read_committed:
            return level::read_committed;
        case isolation_rule::repeatable_read:
            return level::repeatable_read;
        case isolation_rule::serializable:
            return level::serializable;
        case isolation_rule::by_statement:
            break;
    }
    if (frame.tag == wire::tag_f::sync) return std::nullopt;
    if (frame.tag == wire::tag_f::function_call) return level::repeatable_read;
    if (frame.tag != wire::tag_f::query) return level_for_batch(frame.rest);
    if (!frame.complete || frame.total > limits_.parsed_message_bytes)
        return level::repeatable_read;
    const auto sql = wire::decode_query(frame.body());
    const auto facts = sql ? facts_of(*sql) : nullptr;
    return facts ? level_for_query(*facts) : std::optional(level::repeatable_read);
}

// Several statements in one query are one implicit transaction, unless they begin one themselves.
std::optional<level> session::implementation::level_for_query(const sql::facts& facts) const {
    if (facts.statements.empty()) return std::nullopt;
    if (facts.statements.size() == 1 || facts.statements.front().what == sql::kind::begin)
        return level_for_statement(facts.statements.front());
    return level::repeatable_read;
}

// An extended batch, from the bytes at hand. What cannot be seen may read and then write.
std::optional<level> session::implementation::level_for_batch(std::string_view bytes) {
    struct named {
        std::string_view name;
        std::shared_ptr<const sql::facts> facts;
    };
    std::vector<named> parsed;  // in these bytes
    std::vector<named> bound;
    const auto look_up = [](const std::vector<named>& list, std::string_view name) {
        const auto found = std::find_if(
            list.rbegin(), list.rend(), [&](const auto& one) { return one.name == name; });
        return found == list.rend() ? nullptr : &*found;
    };
    std::optional<level> wanted;
    int executes = 0;
    bool only_single_row_writes = true;
    for (;;) {
        const auto frame = wire::scan_frame(bytes);
        if (frame.status != wire::scan_status::complete) return level::repeatable_read;
        const char tag = frame.header.tag;
        if (tag == wire::tag_f::sync) break;
        if (tag == wire::tag_f::parse) {
            const auto message = wire::decode_parse(frame.body);
            if (!message || frame.header.total_size() > limits_.parsed_message_bytes)
                return level::repeatable_read;
            parsed.push_back({message->statement, facts_of(message->query)});
        } else if (tag == wire::tag_f::bind) {
            const auto head = wire::decode_bind_head(frame.body);
            if (!head) return level::repeatable_read;
            const auto* here = look_up(parsed, head->statement);
            const auto known = here ? nullptr : statements_.expect(head->statement);
            bound.push_back({head->portal, here ? here->facts : known ? known->facts : nullptr});
        } else if (tag == wire::tag_f::execute) {
            const auto message = wire::decode_execute(frame.body);
            const auto* portal = message ? look_up(bound, message->portal) : nullptr;
            if (!portal || !portal->facts || portal->facts->statements.size() > 1)
                return level::repeatable_read;
            if (portal->facts->statements.empty()) {
                only_single_row_writes = false;
            } else {
                const auto& statement = portal->facts->statements.front();
                if (++executes == 1) wanted = level_for_statement(statement);
                only_single_row_writes = only_single_row_writes && statement.single_row_write;
                // It has begun a block, at the level that it named or that was chosen for it.
                if (executes == 1 && statement.what == sql::kind::begin) return wanted;
            }
        } else if (tag == wire::tag_f::query || tag == wire::tag_f::function_call) {
            return level::repeatable_read;
        }
        bytes.remove_prefix(frame.header.total_size());
    }
    if (executes <= 1) return wanted;
    return only_single_row_writes ? level::read_committed : level::repeatable_read;
}

}  // namespace hotlane::session
