// Giving a new link what the client believes its session to hold: SETs and prepared statements.
// All of it goes out in one write; every reply is swallowed. Portals need none: the link changes
// between transactions only.
#include <algorithm>

#include "router/session/implementation.hpp"

namespace hotlane::session {
namespace {

constexpr std::size_t told_statuses_max = 200;
constexpr std::size_t status_bytes_max = 8 * 1024;
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
        const auto& types = statement->told_parameters.value_or(statement->types);
        wire::append_parse(out, statement->name, statement->sql, types);
        owed_.push(hidden(owes::parse, statement));
        if (statement->told_columns) {
            wire::append_target(out, wire::tag_f::describe, 'S', statement->name);
            owed_.push(hidden(owes::describe_statement, statement));
        }
        wire::append_empty(out, wire::tag_f::sync);
        owed_.push(hidden(owes::sync));
    }
    forward_changed_status();
    if (owed_.empty()) link_is_ready();
}

// A reply that only the session reads. The caller pops entries.
void session::implementation::replay_reply(char tag, std::string_view body) {
    auto& front = owed_.front();
    auto* const statement = front.statement.get();
    if (!statement) return;
    if (tag == wire::tag_b::error) {
        auto kept = std::make_shared<std::string>();
        if (body.size() <= kept_error_max)
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

void session::implementation::note_status(std::string_view name, std::string_view value) {
    if (name.size() + value.size() > status_bytes_max) return;
    const auto known = std::find_if(told_status_.begin(), told_status_.end(), [&](const auto& one) {
        return one.first == name;
    });
    if (known != told_status_.end())
        known->second = value;
    else if (told_status_.size() < told_statuses_max)
        told_status_.emplace_back(name, value);
}

// What the new home reports otherwise than the old one did.
void session::implementation::forward_changed_status() {
    for (const auto& [name, value] : link_status_) {
        const auto same = std::find(told_status_.begin(),
                                    told_status_.end(),
                                    std::pair<std::string, std::string>(name, value));
        if (same != told_status_.end()) continue;
        note_status(name, value);
        wire::append_parameter_status(to_client_.out(), name, value);
    }
    link_status_.clear();
}

}  // namespace hotlane::session
