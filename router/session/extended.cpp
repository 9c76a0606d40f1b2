// The extended protocol and COPY, client's side: which reply each message will get, and what is
// remembered of statements and portals.
#include <algorithm>

#include "router/session/implementation.hpp"

namespace hotlane::session {
namespace {

owed entry_of(owes what, std::shared_ptr<prepared> statement = nullptr) {
    owed entry;
    entry.what = what;
    entry.statement = std::move(statement);
    return entry;
}

}  // namespace

std::shared_ptr<const std::string> said(const refusal& why) {
    auto text = std::make_shared<std::string>();
    texts::append(*text, texts::severity::error, why);
    return text;
}

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
        default:  // Flush: the client waits for what it has asked so far
            drop_unfinished_retry();
            pass(frame);
            return true;
    }
    unsynced_ = true;
    return phase_ != phase::ended;
}

void session::implementation::take_parse(const client_frame& frame) {
    auto entry = entry_of(owes::parse);
    const bool readable = frame.complete && frame.total <= limits_.parsed_message_bytes;
    drop_unfinished_retry();
    if (readable) {
        if (lent_ && refuse_parse(frame.body())) return;
        if (!remember(frame.body(), entry)) return;
        if (lent_) {
            take_pooled_parse(frame, std::move(entry));
            return;
        }
    } else {
        env_.count_limit_hit("parsed_message_bytes");
        state_.pin_now(pin::unreadable);
        statements_.closing("");
        if (lent_) lent_->statements.drop_unnamed();
        unread_ = true;
    }
    owed_.push(std::move(entry));
    pass(frame);
}

// From now on a Bind may name it; ParseComplete makes it part of what a new link must have.
bool session::implementation::remember(std::string_view body, owed& entry) {
    const auto message = wire::decode_parse(body);
    if (!message) {
        broken_client(wire::to_string(message.error()));
        return false;
    }
    const bool unnamed = message->statement.empty();
    auto facts = facts_of(message->query);
    const auto renamed = lent_ && facts ? renamed_drop(*facts, message->query) : std::string();
    auto text = intern(renamed.empty() ? message->query : std::string_view(renamed),
                       message->parameter_types);
    const auto known = unnamed && !lent_ ? statements_.expect("") : nullptr;
    if (known && known->text == text && !known->refused && !known->result_changed) {
        entry.statement = known;  // the same again
    } else {
        entry.statement = unnamed ? statements_.spare() : std::make_shared<prepared>();
        auto& statement = *entry.statement;
        statement.name = message->statement;
        statement.text = std::move(text);
        statement.facts = std::move(facts);
        statement.drops = !renamed.empty();
        if (lent_) note_execute(statement);
    }
    statements_.sent(entry.statement);
    return true;
}

// ParseComplete.
void session::implementation::keep_statement(const std::shared_ptr<prepared>& statement) {
    const bool more = !statement->name.empty() && !statements_.has(statement->name);
    if (more && !lent_ &&
        (statements_.size() >= limits_.statements ||
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
        if (entry.what == owes::execute && entry.statement->drops)
            statements_.closing(entry.statement->facts->statements.front().name);
    }
    statements_.doubt_sent();
}

// What stands against using this statement at this home; null: nothing.
std::shared_ptr<const std::string> session::implementation::standing_refusal(
    const prepared& statement) const {
    if (statement.refused) return statement.refused;
    const bool changed = lent_ ? footing_ == footing::changed : statement.result_changed;
    if (!changed) return nullptr;
    return said(texts::result_type_changed());
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
            broken_client(wire::to_string(head.error()));
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
    consider_retry(frame, statement ? statement->facts.get() : nullptr);
    retry_goes_on(frame, entry);
    set_portal(head->portal, statement);
    note_bound_key(head->portal.empty() && frame.complete ? statement.get() : nullptr, head->rest);
    if (lent_) {
        const auto name = name_at_link(statement.get(), head->statement);
        if (entry.again) {
            std::string whole;
            append_renamed(whole, frame, *head, name);
            whole.append(head->rest);
            keep_for_retry(entry, whole, frame);
        }
        owed_.push(std::move(entry));
        append_renamed(to_link_.out(), frame, *head, name);
        to_link_.pass(head->rest);
        return;
    }
    if (entry.again) keep_for_retry(entry, frame.at_hand, frame);
    owed_.push(std::move(entry));
    pass(frame);
}

// Whether this message of a batch belongs to what may be sent again; one that does not fit ends
// that.
void session::implementation::retry_goes_on(const client_frame& frame, owed& entry) {
    if (!again_ || !again_->active || again_->complete) return;
    const auto& done = again_->messages;
    bool fits = frame.complete;
    switch (entry.what) {
        case owes::bind:
            fits = fits && done.empty();
            break;
        case owes::describe_portal:
            fits = fits && !done.empty() && done.back().what == owes::bind;
            break;
        case owes::execute: {
            const auto message = wire::decode_execute(frame.body());
            fits = fits && !done.empty() && !ran_ && message && message->row_limit == 0;
            break;
        }
        case owes::sync:
            fits = fits && !done.empty() && done.back().what == owes::execute;
            again_->complete = fits;
            break;
        case owes::query:
        case owes::parse:
        case owes::close:
        case owes::describe_statement:
        case owes::function_call:
        case owes::copy_end:
            fits = false;
            break;
    }
    if (!fits) {
        drop_retry(false);
        return;
    }
    entry.again = true;
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
        broken_client(wire::to_string(message.error()));
        return;
    }
    const bool of_statement = message->kind == 'S';
    if (of_statement || frame.tag == wire::tag_f::close) drop_unfinished_retry();
    const auto statement = of_statement ? statements_.expect(message->name) : portal(message->name);
    if (frame.tag == wire::tag_f::close) {
        owed_.push(entry_of(owes::close, of_statement ? statement : nullptr));
        if (of_statement) {
            statements_.closing(message->name);
        } else {
            set_portal(message->name, nullptr);
        }
        if (lent_ && of_statement)
            close_at_link(frame, statement.get(), message->name);
        else
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
    if (lent_ && of_statement) {
        const auto name = name_at_link(statement.get(), message->name);
        owed_.push(std::move(entry));
        wire::append_target(to_link_.out(), wire::tag_f::describe, 'S', name);
        return;
    }
    retry_goes_on(frame, entry);
    if (entry.again) keep_for_retry(entry, frame.at_hand, frame);
    owed_.push(std::move(entry));
    pass(frame);
}

void session::implementation::take_execute(const client_frame& frame) {
    const auto message = wire::decode_execute(frame.body());
    if (!message) {
        broken_client(wire::to_string(message.error()));
        return;
    }
    auto entry = entry_of(owes::execute, portal(message->portal));
    if (withholds(entry.statement ? entry.statement->facts.get() : nullptr))
        return withhold_execute(std::move(entry));
    if (lent_ && entry.statement && entry.statement->drops) {
        const auto& name = entry.statement->facts->statements.front().name;
        if (!statements_.expect(name)) {
            entry.instead = said(texts::no_such_statement(name));
            poison(std::move(entry), wire::tag_f::bind);
            return;
        }
        prepare_nothing();
        statements_.closing(name);
    }
    if (entry.statement)
        note_sent(entry.statement->facts.get(), entry.statement->text->sql, false);
    else
        note_sent(nullptr, {}, false);
    retry_goes_on(frame, entry);
    if (entry.again) keep_for_retry(entry, frame.at_hand, frame);
    ran_ = true;
    owed_.push(std::move(entry));
    pass(frame);
}

void session::implementation::take_sync(const client_frame& frame) {
    skipping_ = false;
    if (forecast_ == forecast::idle) {  // the implicit transaction ends, and its portals with it
        portals_.clear();
        unnamed_portal_.reset();
    }
    unsynced_ = ran_ = false;
    statements_.next_batch();
    auto entry = entry_of(owes::sync);
    retry_goes_on(frame, entry);
    if (entry.again) keep_for_retry(entry, frame.at_hand, frame);
    owed_.push(std::move(entry));
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
