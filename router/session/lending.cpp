// Pooled by transaction: a link is borrowed at the first message of a transaction, brought to the
// state that the client believes in, and given back when nothing is owed.
#include <algorithm>

#include "router/session/implementation.hpp"
#include "router/wire/sqlstate.hpp"

namespace hotlane::session {
namespace {

std::string quoted_parts(std::string_view name) {
    std::string out;
    for (;;) {
        const auto dot = name.find('.');
        out += sql::quote_identifier(name.substr(0, dot));
        if (dot == std::string_view::npos) return out;
        out.push_back('.');
        name.remove_prefix(dot + 1);
    }
}

// SET SESSION CHARACTERISTICS stands for three parameters.
std::string undoing(std::string_view name) {
    if (name != characteristics_key) return "RESET " + quoted_parts(name);
    return "RESET default_transaction_isolation; RESET default_transaction_read_only; "
           "RESET default_transaction_deferrable";
}

bool has_name(const pairs& all, std::string_view name) {
    return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.first == name; });
}

}  // namespace

void session::implementation::want_link() {
    link_ = link_phase::wanted;
    if (auto* const link = env_.borrow(*identity_)) link_lent(*link);
}

void session::implementation::link_lent(link_memory& link) {
    lent_ = &link;
    link_kind_ = link.kind;
    link_generation_ = link.generation;
    link_level_ = link.begins_at;
    link_status_ = link.status;
    key_ = link.key;
    link_inbox_.clear();
    link_rest_ = 0;
    status_ = wire::transaction_status::idle;
    in_block_ = false;
    ++link.statements.turn;
    link_ = link_phase::replaying;
    if (phase_ == phase::first_link) {
        link_is_ready();
        return_link();
        greet(link.status, {});
        return;
    }
    if (link.parameters == state_.shared_parameters() || !send_parameters()) link_is_ready();
    if (link_ == link_phase::ready) settle_status();
}

// What the client has set and the link has not, and the other way round. False: they agree.
bool session::implementation::send_parameters() {
    static const pairs none;
    const auto& wanted = state_.parameters();
    const auto before = lent_->parameters;
    const auto& there = before ? *before : none;
    // To the engine a SET means nothing.
    if (there == wanted || link_kind_ == policy::home_kind::engine) return false;
    auto& out = to_link_.out();
    const auto say = [&](std::string_view sql) {
        wire::append_query(out, sql);
        owed entry;
        entry.what = owes::query;
        entry.from = sender::replay;
        owed_.push(std::move(entry));
    };
    auto from = std::mismatch(there.begin(), there.end(), wanted.begin(), wanted.end()).second;
    for (const auto& [name, sql] : there) {
        if (has_name(wanted, name)) continue;
        say(undoing(name));
        from = wanted.begin();  // two names may stand for one setting: all follows anew
    }
    for (; from != wanted.end(); ++from)
        say(from->second);
    lent_->parameters = state_.shared_parameters();
    lent_->statements.drop_unnamed();  // a simple query drops it
    const auto sets_level = [](const auto& one) {
        return one.first == "default_transaction_isolation" || one.first == characteristics_key;
    };
    const bool changes = std::any_of(there.begin(), there.end(), sets_level) ||
                         std::any_of(wanted.begin(), wanted.end(), sets_level);
    if (changes) link_level_ = level::unknown;
    return true;
}

void session::implementation::link_refused(const refusal& why, std::string_view words) {
    if (link_ != link_phase::wanted) return;
    link_ = link_phase::none;
    link_tries_ = 0;
    if (phase_ == phase::first_link) {
        if (words.empty()) {
            fatal(why);
        } else {
            to_client_.out().append(words);
            end();
        }
        return;
    }
    refusal_ = why;
    pump();
}

// Between transactions: the link goes back unless something of the session's is on it. It stays too
// while a cancel is under way that was meant for its last user.
void session::implementation::return_link() {
    if (!is_pooled() || link_ != link_phase::ready || cancels_ > 0) return;
    if (state_.pinned() != pin::none || ask_aftermath()) return;
    settle();
    lent_->begins_at = link_level_;
    lent_->status = link_status_;
    lent_->parameters = state_.shared_parameters();
    const bool stale = lent_->generation != env_.target().generation;
    const bool dirty = lent_->spoiled || to_link_.size() > 0 || !link_inbox_.empty();
    if (stale || dirty) {
        drop_link(!dirty);
        return;
    }
    link_ = link_phase::none;
    lent_ = nullptr;
    key_ = {};
    env_.give_back(link_fate::keep);
}

// currval and lastval know only of the session that used the sequence.
bool session::implementation::reads_sequence(const client_frame& frame) {
    if (!frame.complete || frame.total > limits_.parsed_message_bytes) return false;
    std::shared_ptr<const sql::facts> facts;
    if (frame.tag == wire::tag_f::query) {
        if (const auto sql = wire::decode_query(frame.body())) facts = facts_of(*sql);
    } else if (frame.tag == wire::tag_f::parse) {
        if (const auto parsed = wire::decode_parse(frame.body())) facts = facts_of(parsed->query);
    } else if (frame.tag == wire::tag_f::bind) {
        const auto head = wire::decode_bind_head(frame.body());
        const auto statement = head ? statements_.expect(head->statement) : nullptr;
        if (statement) facts = statement->facts;
    }
    return facts && std::any_of(facts->statements.begin(),
                                facts->statements.end(),
                                [](const auto& one) { return one.reads_sequence; });
}

void session::implementation::count_pin() {
    const auto now = state_.pinned();
    if (std::exchange(pin_counted_, now) != now) env_.pinned(now);
}

// Nothing runs at a home, but the client waits: for the gate, for a link, or for a retry.
bool session::implementation::cancel_queued() {
    if (pauses()) {
        std::string error;
        texts::append(error, texts::severity::error, texts::cancelled());
        end_pause(error);
        after_home();
        return true;
    }
    if (phase_ != phase::relaying || begun_ || inbox_.empty()) return false;
    if (held_) {
        held_ = false;
        env_.cancel_wait();
        act(disarm{timer::hold});
    } else if (link_ == link_phase::wanted) {
        env_.stop_waiting();
        link_ = link_phase::none;
    } else {
        return false;
    }
    refusal_ = texts::cancelled();
    pump();
    return true;
}

}  // namespace hotlane::session
