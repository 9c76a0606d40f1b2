// The extended protocol and COPY, client's side: which reply each message will get, and what is
// remembered of statements and portals.
#include <algorithm>

#include "router/session/implementation.hpp"

namespace hotlane::session {
namespace {

// No client can have prepared this; binding it makes the home fail the batch in its own way.
constexpr std::string_view nobodys_statement = "hotlane: result type changed";

owed entry_of(owes what, std::shared_ptr<prepared> statement = nullptr) {
    owed entry;
    entry.what = what;
    entry.statement = std::move(statement);
    return entry;
}

}  // namespace

bool session::implementation::take_extended(const client_frame& frame) {
    switch (frame.tag) {
        case wire::tag_f::parse:
            take_parse(frame);
            break;
        case wire::tag_f::bind:
            take_bind(frame);
            break;
        case wire::tag_f::describe:
        case wire::tag_f::close:
            take_target(frame);
            break;
        case wire::tag_f::execute:
            take_execute(frame);
            break;
        case wire::tag_f::sync:
            take_sync(frame);
            return phase_ != phase::ended;
        default:  // Flush
            pass(frame);
            return true;
    }
    unsynced_ = true;
    return phase_ != phase::ended;
}

void session::implementation::take_parse(const client_frame& frame) {
    auto entry = entry_of(owes::parse);
    const bool readable = frame.complete && frame.total <= limits_.parsed_message_bytes;
    if (readable) {
        if (!remember(frame.body(), entry)) return;
    } else {
        env_.count_limit_hit("parsed_message_bytes");
        state_.pin_now(pin::unreadable);
        statements_.closing("");
    }
    owed_.push(std::move(entry));
    pass(frame);
}

// From now on a Bind may name it; ParseComplete makes it part of what a new link must have.
bool session::implementation::remember(std::string_view body, owed& entry) {
    const auto message = wire::decode_parse(body);
    if (!message) {
        fatal(texts::bad_client_message(wire::to_string(message.error())));
        return false;
    }
    const bool unnamed = message->statement.empty();
    const auto known = unnamed ? statements_.expect("") : nullptr;
    if (known && known->sql == message->query && known->types == message->parameter_types &&
        !known->refused && !known->result_changed) {
        entry.statement = known;  // the same again
    } else {
        entry.statement = unnamed ? statements_.spare() : std::make_shared<prepared>();
        auto& statement = *entry.statement;
        statement.name = message->statement;
        statement.sql = message->query;
        statement.types.assign(message->parameter_types.begin(), message->parameter_types.end());
        statement.facts = facts_of(message->query);
    }
    statements_.sent(entry.statement);
    return true;
}

// ParseComplete.
void session::implementation::keep_statement(const std::shared_ptr<prepared>& statement) {
    const bool more = !statement->name.empty() && !statements_.has(statement->name);
    if (more && (statements_.size() >= limits_.statements ||
                 statements_.bytes() + statement->bytes() > statement_bytes_max)) {
        env_.count_limit_hit("statements_per_client");
        state_.pin_now(pin::other);
        return;
    }
    statements_.put(statement);
}

// The home skips messages: what was expected of them will not be. What was sent behind them counts.
void session::implementation::expect_again() {
    statements_.forget_sent();
    for (std::size_t i = 0; i < owed_.size(); ++i) {
        const auto& entry = owed_.at(i);
        if (entry.what == owes::query && !entry.hidden()) statements_.closing("");
        if (!entry.statement) continue;
        if (entry.what == owes::parse) statements_.sent(entry.statement);
        if (entry.what == owes::close) statements_.closing(entry.statement->name);
    }
}

// What stands against using this statement at this home; null: nothing.
std::shared_ptr<const std::string> session::implementation::standing_refusal(
    const prepared& statement) const {
    if (statement.refused) return statement.refused;
    if (!statement.result_changed) return nullptr;
    auto text = std::make_shared<std::string>();
    texts::append(*text, texts::severity::error, texts::result_type_changed());
    return text;
}

// Sends, in place of the client's message, one that the home must refuse, so that the batch and the
// transaction fail there as they do for the client, and gives the client our reason.
void session::implementation::poison(owed entry, char tag) {
    if (tag == wire::tag_f::bind) {
        std::string body(1, '\0');
        body.append(nobodys_statement);
        body.append(7, '\0');  // the zero, then no formats, no values, no result formats
        wire::append_bytes(to_link_.out(), tag, body);
    } else {
        wire::append_target(to_link_.out(), tag, 'S', nobodys_statement);
    }
    owed_.push(std::move(entry));
    client_discards_ = true;
}

void session::implementation::take_bind(const client_frame& frame) {
    const auto head = wire::decode_bind_head(frame.body());
    if (!head) {
        // Names that do not end within a small message's length: relayed, not understood.
        if (frame.complete) {
            fatal(texts::bad_client_message(wire::to_string(head.error())));
            return;
        }
        env_.count_limit_hit("parsed_message_bytes");
        unnamed_portal_.reset();
        owed_.push(entry_of(owes::bind));
        pass(frame);
        return;
    }
    const auto statement = statements_.expect(head->statement);
    auto entry = entry_of(owes::bind, statement);
    if (statement) entry.instead = standing_refusal(*statement);
    if (entry.instead) {
        poison(std::move(entry), wire::tag_f::bind);
        return;
    }
    set_portal(head->portal, statement);
    note_bound_key(head->portal.empty() && frame.complete ? statement.get() : nullptr, head->rest);
    owed_.push(std::move(entry));
    pass(frame);
}

void session::implementation::set_portal(std::string_view name,
                                         const std::shared_ptr<prepared>& statement) {
    if (name.empty()) {
        unnamed_portal_ = statement;
        return;
    }
    std::erase_if(portals_, [&](const auto& one) { return one.first == name; });
    if (statement && portals_.size() < portals_max) portals_.emplace_back(name, statement);
}

std::shared_ptr<prepared> session::implementation::portal(std::string_view name) const {
    if (name.empty()) return unnamed_portal_;
    const auto found = std::find_if(
        portals_.begin(), portals_.end(), [&](const auto& one) { return one.first == name; });
    return found == portals_.end() ? nullptr : found->second;
}

void session::implementation::take_target(const client_frame& frame) {
    const auto message = wire::decode_target(frame.body());
    if (!message) {
        fatal(texts::bad_client_message(wire::to_string(message.error())));
        return;
    }
    const bool of_statement = message->kind == 'S';
    const auto statement = of_statement ? statements_.expect(message->name) : portal(message->name);
    if (frame.tag == wire::tag_f::close) {
        owed_.push(entry_of(owes::close, of_statement ? statement : nullptr));
        if (of_statement) {
            statements_.closing(message->name);
        } else {
            set_portal(message->name, nullptr);
        }
        pass(frame);
        return;
    }
    auto entry =
        entry_of(of_statement ? owes::describe_statement : owes::describe_portal, statement);
    if (of_statement && statement) entry.instead = standing_refusal(*statement);
    if (entry.instead) {
        poison(std::move(entry), wire::tag_f::describe);
        return;
    }
    owed_.push(std::move(entry));
    pass(frame);
}

void session::implementation::take_execute(const client_frame& frame) {
    const auto message = wire::decode_execute(frame.body());
    if (!message) {
        fatal(texts::bad_client_message(wire::to_string(message.error())));
        return;
    }
    auto entry = entry_of(owes::execute, portal(message->portal));
    if (entry.statement)
        note_sent(entry.statement->facts.get(), entry.statement->sql, false);
    else
        note_sent(nullptr, {}, false);
    owed_.push(std::move(entry));
    pass(frame);
}

void session::implementation::take_sync(const client_frame& frame) {
    skipping_ = false;
    unsynced_ = false;
    owed_.push(entry_of(owes::sync));
    pass(frame);
}

void session::implementation::take_copy(const client_frame& frame) {
    if (frame.tag != wire::tag_f::copy_data) {
        if (copy_in_)
            copy_in_ = false;
        else if (!owed_.empty() && !skipping_)
            owed_.push(entry_of(owes::copy_end));
    }
    pass(frame);
}

}  // namespace hotlane::session
