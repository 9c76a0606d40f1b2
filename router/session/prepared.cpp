// Prepared statements on borrowed links. Clients choose the same names for different texts, so on
// such a link each has a name of ours, by its text and types; what a link lacks is prepared there
// before it is used, and the least recently used makes room.
//
// The client's own Parse is always sent, behind a Close of what the link may have: a description
// from before an ALTER TABLE must not come back. What was told to a client of a result is compared
// before its statement runs on a link that was not asked yet.
#include <utility>

#include "router/session/implementation.hpp"
#include "router/wire/sqlstate.hpp"

namespace hotlane::session {
namespace {

constexpr std::string_view prefix = "hotlane_";
constexpr std::string_view nothing = "hotlane_none";

owed hidden(owes what, std::shared_ptr<const statement_text> text) {
    owed entry;
    entry.what = what;
    entry.from = sender::ensure;
    entry.slot = std::move(text);
    return entry;
}

std::string home_name(const prepared& statement) {
    return statement.name.empty() ? std::string() : link_name(*statement.text);
}

}  // namespace

std::string link_name(const statement_text& text) {
    return std::string(prefix) + std::to_string(text.id);
}

types_ptr columns_of(char tag, std::string_view body) {
    auto told = std::make_shared<types>();
    if (tag == wire::tag_b::row_description)
        if (const auto columns = wire::decode_row_description(body))
            for (const auto& column : *columns)
                told->push_back(column.type);
    return told;
}

types_ptr columns_of(char tag, std::string_view body, const types_ptr& known) {
    const bool rows = tag == wire::tag_b::row_description;
    if (known && rows ? wire::describes(body, *known) : known && known->empty()) return known;
    return columns_of(tag, body);
}

// Before a message that names a statement. True: it has to wait for replies of the home.
bool session::implementation::waits_for_statement(const client_frame& frame) {
    footing_ = footing::firm;
    if (frame.tag == wire::tag_f::query) return waits_for_names(frame);
    std::string_view name;
    if (frame.tag == wire::tag_f::parse) {
        name = frame.body().substr(0, frame.body().find('\0'));
        if (name.empty()) return false;
        // If it is taken the answer depends on the state of the transaction, too.
        if (statements_.expect(name) && !owed_.empty()) return waits_for_answers();
    } else if (frame.tag == wire::tag_f::bind) {
        const auto head = wire::decode_bind_head(frame.body());
        if (!head) return false;
        name = head->statement;
    } else if (frame.tag == wire::tag_f::describe) {
        const auto target = wire::decode_target(frame.body());
        if (!target || target->kind != 'S') return false;
        name = target->name;
    } else {
        return false;
    }
    // It may turn out that the client has no such statement, while the link has one of that text.
    if (!owed_.empty() && statements_.is_unsure(name)) return waits_for_answers();
    const auto statement = statements_.expect(name);
    if (!statement || frame.tag == wire::tag_f::parse) return false;
    if (statement->original && !follow_execute(*statement)) return waits_for_answers();
    footing_ = ensure(statement);
    return footing_ == footing::asked;
}

// A DEALLOCATE or EXECUTE of what may not be there.
bool session::implementation::waits_for_names(const client_frame& frame) {
    if (owed_.empty() || !frame.complete || frame.total > limits_.parsed_message_bytes)
        return false;
    const auto sql = wire::decode_query(frame.body());
    const auto facts = sql ? facts_of(*sql) : nullptr;
    if (!facts) return false;
    for (const auto& one : facts->statements) {
        const bool names = one.what == sql::kind::deallocate || one.what == sql::kind::execute;
        if (names && statements_.is_unsure(one.name)) return waits_for_answers();
    }
    return false;
}

bool session::implementation::waits_for_answers() {
    if (unsynced_ && !std::exchange(flushed_, true))
        wire::append_empty(to_link_.out(), wire::tag_f::flush);
    return true;
}

// A Parse that the home would refuse if the names were the client's own there.
bool session::implementation::refuse_parse(std::string_view body) {
    const auto name = body.substr(0, body.find('\0'));
    if (name.empty()) return false;
    const bool taken = statements_.expect(name) != nullptr;
    const bool full =
        statements_.size() >= limits_.statements || statements_.bytes() > statement_bytes_max;
    if (!taken && !full) return false;
    if (!taken) env_.count_limit_hit("statements_per_client");
    if (taken) {
        // The home judges the text first; only then is the name looked at.
        const auto message = wire::decode_parse(body);
        if (!message) return false;
        auto probe = intern(message->query, message->parameter_types);
        const auto probe_name = link_name(*probe);
        hide_close(probe_name, nullptr);
        wire::append_parse(to_link_.out(), probe_name, probe->sql, probe->parameters);
        lent_->statements.put(probe_name, probe);
        owed_.push(hidden(owes::parse, std::move(probe)));
    }
    owed entry;
    entry.what = owes::parse;
    entry.instead = said(taken ? texts::duplicate_statement(name) : texts::too_many_statements());
    poison(std::move(entry), wire::tag_f::bind);
    return true;
}

footing session::implementation::ensure(const std::shared_ptr<prepared>& statement) {
    auto& there = lent_->statements;
    const auto* const slot = there.find(*statement);
    const auto& told = statement->told_columns;
    if (slot) {
        if (!told) return footing::firm;
        if (slot->asked) return footing::asked;
        if (slot->columns) {
            if (slot->columns == told || *slot->columns == *told) return footing::firm;
            if (slot->made == there.turn) return footing::changed;
            there.erase(*statement);  // perhaps the link's copy is the old one
        }
    }
    ask_for(statement);
    return told ? footing::asked : footing::firm;
}

// Prepares it, and where a description must be compared asks for that; without a Sync, so that it
// becomes part of the client's batch.
void session::implementation::ask_for(const std::shared_ptr<prepared>& statement) {
    auto& there = lent_->statements;
    const auto name = home_name(*statement);
    auto* slot = there.find(*statement);
    unsynced_ = true;
    if (!slot) {
        if (!name.empty()) hide_close(name, nullptr);
        wire::append_parse(to_link_.out(), name, statement->text->sql, statement->parameters());
        auto entry = hidden(owes::parse, statement->text);
        entry.statement = statement;
        owed_.push(std::move(entry));
        slot = &there.put(statement->name, statement->text);
    }
    if (!statement->told_columns) return;
    slot->asked = true;
    wire::append_target(to_link_.out(), wire::tag_f::describe, 'S', name);
    wire::append_empty(to_link_.out(), wire::tag_f::flush);
    auto entry = hidden(owes::describe_statement, statement->text);
    entry.statement = statement;
    owed_.push(std::move(entry));
}

// Makes room first, then closes what stands under the name, if anything does. `text`: what the link
// has again should the home skip this.
void session::implementation::hide_close(std::string_view name,
                                         std::shared_ptr<const statement_text> text) {
    auto& there = lent_->statements;
    if (!text && there.size() >= tool_.statements_per_link) {
        if (auto old = there.oldest()) {
            there.erase(old->id);
            const auto old_name = link_name(*old);
            env_.count_limit_hit("statements_per_link");
            hide_close(old_name, std::move(old));
        }
    }
    wire::append_target(to_link_.out(), wire::tag_f::close, 'S', name);
    owed_.push(hidden(owes::close, std::move(text)));
}

// A Parse of the client on a borrowed link.
void session::implementation::take_pooled_parse(const client_frame& frame, owed entry) {
    const auto statement = entry.statement;
    auto& there = lent_->statements;
    entry.slot = statement->text;
    if (statement->name.empty()) {
        unread_ = false;
        there.put({}, statement->text);
        owed_.push(std::move(entry));
        if (statement->drops || statement->original)
            wire::append_parse(
                to_link_.out(), "", statement->text->sql, statement->text->parameters);
        else
            pass(frame);
        return;
    }
    const auto name = link_name(*statement->text);
    hide_close(name, nullptr);
    there.put(statement->name, statement->text);
    owed_.push(std::move(entry));
    wire::append_parse(to_link_.out(), name, statement->text->sql, statement->text->parameters);
}

// Under which name the link has what the client means. What the client does not have must not be
// found there either, though others may have left it.
std::string session::implementation::name_at_link(const prepared* statement,
                                                  std::string_view name) {
    if (statement) return home_name(*statement);
    if (name.starts_with(prefix)) return std::string(nobodys_statement);
    if (name.empty() && !unread_) {
        lent_->statements.drop_unnamed();
        hide_close({}, nullptr);
    }
    return std::string(name);
}

// The link keeps the statement for whoever uses it next: only the answer is wanted.
void session::implementation::close_at_link(const client_frame& frame,
                                            const prepared* statement,
                                            std::string_view name) {
    if (name.empty()) {
        lent_->statements.drop_unnamed();
        pass(frame);
        return;
    }
    const bool ours = statement != nullptr || name.starts_with(prefix);
    wire::append_target(to_link_.out(), wire::tag_f::close, 'S', ours ? nobodys_statement : name);
}

void session::implementation::ensured_reply(char tag, std::string_view body) {
    auto& front = owed_.front();
    if (!front.statement) return;
    if (tag == wire::tag_b::row_description || tag == wire::tag_b::no_data) {
        if (auto* const slot = lent_->statements.find(*front.statement)) {
            slot->columns = columns_of(tag, body, front.statement->told_columns);
            slot->asked = false;
        }
    }
}

// The home has skipped this message, or it has failed: what was expected of it at the link is not
// so. Closed again is harmless, so where it is not certain the link is said to lack it.
void session::implementation::undo_skipped(const owed& entry) {
    if (!lent_ || !entry.slot) return;
    auto& there = lent_->statements;
    if (entry.what == owes::parse) {
        if (entry.statement && entry.statement->name.empty())
            there.drop_unnamed();
        else
            there.erase(entry.slot->id);
    } else if (entry.what == owes::close) {
        there.put(link_name(*entry.slot), entry.slot);
    } else if (entry.what == owes::describe_statement && entry.statement) {
        if (auto* const slot = there.find(*entry.statement)) slot->asked = false;
    }
}

// The link's copy of a statement is out of date, or not there: the next to need it prepares it.
void session::implementation::note_stale_statement(const wire::error_fields& fields) {
    if (!lent_ || owed_.empty() || !owed_.front().statement) return;
    if (fields.sqlstate == wire::sqlstate::feature_not_supported || fields.sqlstate == "26000")
        lent_->statements.erase(*owed_.front().statement);
}

// The beginning of a Bind under the link's name for the statement. Its values follow as they are.
void append_renamed(std::string& out,
                    const client_frame& frame,
                    const wire::bind_head& head,
                    std::string_view name) {
    const auto body = frame.total - wire::header_size - head.statement.size() + name.size();
    wire::append_bind_head(out, body, head.portal, name);
}

// DEALLOCATE and EXECUTE name statements that the client has prepared by message: the link knows
// them by another name. What the link has is not its client's to drop, so a DEALLOCATE drops a
// statement of no text, which a home prepares in whatever state it is. Empty: nothing to change.
std::string session::implementation::renamed_query(const sql::facts& facts, std::string_view sql) {
    std::string out;
    std::size_t done = 0;
    if (link_kind_ == policy::home_kind::engine) return out;
    for (const auto& one : facts.statements) {
        const bool drops = one.what == sql::kind::deallocate;
        if (!drops && one.what != sql::kind::execute) continue;
        const auto statement = statements_.expect(one.name);
        if (!statement || one.name.empty() || one.end > sql.size()) continue;
        const auto at = sql::name_position(sql.substr(one.begin, one.end - one.begin));
        if (!at) continue;
        out.append(sql.substr(done, one.begin + at->first - done));
        out.append(drops ? prepare_nothing() : prepare_for_query(*statement));
        done = one.begin + at->second;
    }
    if (done > 0) out.append(sql.substr(done));
    return out;
}

// The same for a DEALLOCATE that is prepared: what stands under the name then is decided when it
// runs (take_execute). One that may mean a statement prepared by SQL stays as it is.
std::string session::implementation::renamed_drop(const sql::facts& facts, std::string_view sql) {
    if (link_kind_ == policy::home_kind::engine || facts.statements.size() != 1) return {};
    const auto& one = facts.statements.front();
    if (one.what != sql::kind::deallocate || one.name.empty()) return {};
    if (state_.pinned() != pin::none && !statements_.expect(one.name)) return {};
    const auto at = sql::name_position(sql.substr(one.begin, one.end - one.begin));
    if (!at) return {};
    std::string out(sql.substr(0, one.begin + at->first));
    return out.append(nothing).append(sql.substr(one.begin + at->second));
}

// An EXECUTE by message. Which statement it means is decided when it is bound or described.
void session::implementation::note_execute(prepared& statement) {
    if (!statement.facts || link_kind_ == policy::home_kind::engine) return;
    const auto& all = statement.facts->statements;
    if (all.size() != 1 || all.front().what != sql::kind::execute) return;
    if (!statements_.expect(all.front().name)) return;
    statement.original = std::make_shared<const std::string>(statement.text->sql);
    follow_execute(statement);
}

// The text, and the link, get what the client has under that name now; if it has nothing the home
// says so in its own words. False: that hangs on a reply to come.
bool session::implementation::follow_execute(prepared& statement) {
    const auto& one = statement.facts->statements.front();
    if (!owed_.empty() && statements_.is_unsure(one.name)) return false;
    const std::string_view sql(*statement.original);
    const auto meant = statements_.expect(one.name);
    const auto at = sql::name_position(sql.substr(one.begin, one.end - one.begin));
    std::string text(sql);
    if (meant && !one.name.empty() && at) {
        const auto name = link_name(*meant->text);
        text.replace(one.begin + at->first, at->second - at->first, name);
        if (!lent_->statements.find(*meant)) {
            unsynced_ = true;
            hide_close(name, nullptr);
            wire::append_parse(to_link_.out(), name, meant->text->sql, meant->parameters());
            owed_.push(hidden(owes::parse, meant->text));
            lent_->statements.put(meant->name, meant->text);
        }
    }
    if (text == statement.text->sql) return true;
    const auto before = statement.bytes();
    statement.text = intern(text, statement.text->parameters);
    statement.told_columns
        .reset();  // of another statement; PostgreSQL does not compare them either
    statements_.grew(statement, before);
    return true;
}

std::string session::implementation::prepare_nothing() {
    const std::string name(nothing);
    hide_close(name, nullptr);
    wire::append_parse(to_link_.out(), name, "", {});
    owed_.push(hidden(owes::parse, nullptr));
    return name;
}

std::string session::implementation::prepare_for_query(const prepared& statement) {
    auto name = link_name(*statement.text);
    if (lent_->statements.find(statement) || unsynced_) return name;
    wire::append_parse(to_link_.out(), name, statement.text->sql, statement.parameters());
    wire::append_empty(to_link_.out(), wire::tag_f::sync);
    auto entry = hidden(owes::parse, statement.text);
    entry.from = sender::replay;
    owed_.push(std::move(entry));
    entry = hidden(owes::sync, nullptr);
    entry.from = sender::replay;
    owed_.push(std::move(entry));
    lent_->statements.put(statement.name, statement.text);
    return name;
}

}  // namespace hotlane::session
