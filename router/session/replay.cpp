// Giving a new link what the client believes its session to hold: SETs and prepared statements.
// All of it goes out in one write; every reply is swallowed. Portals need none: the link changes
// between transactions only.
#include <algorithm>

#include "router/session/implementation.hpp"

namespace hotlane::session {
namespace {

constexpr std::size_t kept_error_max = 8 * 1024;  // one for each statement

owed hidden(owes what, std::shared_ptr<prepared> statement = nullptr) {
    owed entry;
    entry.what = what;
    entry.from = sender::replay;
    entry.statement = std::move(statement);
    return entry;
}

}  // namespace

void session::implementation::start_replay() {
    link_ = link_phase::replaying;
    status_ = wire::transaction_status::idle;
    auto& out = to_link_.out();
    for (const auto& [name, sql] : state_.parameters()) {
        wire::append_query(out, sql);
        owed_.push(hidden(owes::query));
    }
    for (auto& statement : statements_.all()) {
        statement->result_changed = false;
        statement->refused.reset();
        wire::append_parse(out, statement->name, statement->text->sql, statement->parameters());
        owed_.push(hidden(owes::parse, statement));
        if (statement->told_columns) {
            wire::append_target(out, wire::tag_f::describe, 'S', statement->name);
            owed_.push(hidden(owes::describe_statement, statement));
        }
        wire::append_empty(out, wire::tag_f::sync);
        owed_.push(hidden(owes::sync));
    }
    if (!owed_.empty()) return;
    link_is_ready();
    settle_status();
}

// A reply that only the session reads. The caller pops entries.
void session::implementation::replay_reply(char tag, std::string_view body) {
    auto& front = owed_.front();
    auto* const statement = front.statement.get();
    if (!statement) {
        // What could not be set or undone is on the link now: nobody else may have it.
        if (tag == wire::tag_b::error && lent_) lent_->spoiled = true;
        return;
    }
    if (tag == wire::tag_b::error) {
        auto kept = std::make_shared<std::string>();
        const auto fields = wire::decode_error(body);
        if (fields && tells_of_fence(*fields) && env_.left_home())
            texts::append(
                *kept, texts::severity::error, texts::left_home(tool_.name, fields->message));
        else if (body.size() <= kept_error_max)
            wire::append_bytes(*kept, tag, body);
        else
            texts::append(*kept, texts::severity::error, texts::result_type_changed());
        statement->refused = std::move(kept);
    } else if (tag == wire::tag_b::no_data) {
        statement->result_changed = !statement->told_columns->empty();
    } else if (tag == wire::tag_b::row_description) {
        const auto columns = wire::decode_row_description(body);
        const auto& told = *statement->told_columns;
        statement->result_changed = !columns || !std::equal(columns->begin(),
                                                            columns->end(),
                                                            told.begin(),
                                                            told.end(),
                                                            [](const auto& column, auto type) {
                                                                return column.type == type;
                                                            });
    }
}

// With standard_conforming_strings off what PostgreSQL's parser makes of a text is wrong, so it is
// not asked, and what the text does is not known.
void session::implementation::note_syntax(std::string_view name, std::string_view value) {
    if (name != "standard_conforming_strings") return;
    reads_wrong_ = value == "off";
    if (reads_wrong_ && link_ == link_phase::ready) state_.pin_now(pin::string_syntax);
}

bool session::implementation::note_status(std::string_view name, std::string_view value) {
    note_syntax(name, value);
    const bool same = told_status_ == link_status_;
    const auto before = told_status_;
    told_status_ = with_status(told_status_, name, value);
    link_status_ = same ? told_status_ : with_status(link_status_, name, value);
    return told_status_ != before;
}

// The client is told what this link reports otherwise than the one before, and nothing else.
void session::implementation::settle_status() {
    if (link_status_ == told_status_ || !link_status_) return;
    const auto now = link_status_;
    for (const auto& [name, value] : *now)
        if (note_status(name, value)) wire::append_parameter_status(to_client_.out(), name, value);
    // Equal lists become one, so that the next comparison is one of addresses.
    link_status_ = shared_list(now);
    told_status_ = told_status_->size() == now->size() ? link_status_ : shared_list(told_status_);
}

}  // namespace hotlane::session
