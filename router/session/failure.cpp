// Losses, and what may have been committed when they happen (rule 8): a client is told 08006 only
// where nothing of its transaction can be in force, and 08007 wherever something can.
#include "router/session/implementation.hpp"

namespace hotlane::session {

void session::implementation::link_lost(std::string_view why) {
    if (phase_ == phase::ended || link_ == link_phase::none) return;
    if (link_ == link_phase::opening || link_ == link_phase::retrying) {
        if (link_ == link_phase::opening) link_failed(why);
        return;
    }
    if (is_pooled() && (link_ == link_phase::wanted || link_ == link_phase::replaying)) {
        if (link_ == link_phase::replaying) lost_before_use(why);
        return;
    }
    if (link_ == link_phase::login || link_ == link_phase::replaying) {
        // Servers that start or stop close connections half-way: within the time, ask again.
        owed_.clear();
        retry_link(why);
        settle();
        return;
    }
    if (pauses()) {
        end_pause(std::string(again_->error));
        forget_transaction();
        leave_gate();
        return;
    }
    if (begun_) {
        const auto news =
            may_have_committed() ? texts::lost_outcome_unknown() : texts::lost_nothing_committed();
        if (!answer_loss(news)) fatal(news);
        return;
    }
    // Idle: nobody need know, unless what the link held is gone with it.
    drop_link(false);
    if (const auto reason = state_.pinned(); reason != pin::none)
        fatal(texts::pinned_link_lost(tool_.name, to_string(reason)));
}

// A borrowed link broke while it was made ready: nothing of the client was sent, so another is
// asked for, a few times.
void session::implementation::lost_before_use(std::string_view why) {
    owed_.clear();
    drop_link(false);
    if (++link_tries_ < link_tries_max) return;
    link_tries_ = 0;
    refusal_ = texts::cannot_connect(tool_.name, why);
}

// A loss that can be told in the place of the one reply that is owed: an error, ReadyForQuery, and
// the session goes on over another link. Drivers lose the SQLSTATE of a connection that closes
// (libpq reports the end of the stream instead), and 08007 is worth nothing unread.
// False: several replies are owed, one has come in part, or the link held state that is gone with
// it; then only the end of the connection is unambiguous.
bool session::implementation::answer_loss(const refusal& why) {
    const bool mid_message = link_rest_ > 0 && !link_swallows_;
    if (phase_ != phase::relaying || state_.pinned() != pin::none || mid_message || client_eof_ ||
        shutting_down_ || skipping_)
        return false;
    std::size_t ends = 0;
    bool open_batch = unsynced_;
    for (std::size_t i = 0; i < owed_.size(); ++i) {
        const auto what = owed_.at(i).what;
        if (owed_.at(i).hidden() || what == owes::copy_end) continue;
        const bool end = what == owes::query || what == owes::sync || what == owes::function_call;
        ends += end ? 1 : 0;
        if (!end && i + 1 == owed_.size()) open_batch = true;
    }
    if (ends > 1 || (ends == 1 && open_batch)) return false;
    forget_transaction();
    client_discards_ = client_rest_ > 0;
    if (ends == 0 && !open_batch) {
        refusal_ = why;  // in a block, waiting for the client: its next message is answered so
    } else {
        auto& out = to_client_.out();
        texts::append(out, texts::severity::error, why);
        if (ends == 1)
            wire::append_ready(out, wire::transaction_status::idle);
        else
            refusing_ = true;
    }
    unknown_ = unknown_ || why.sqlstate == "08007";
    ++errors_;
    act(disarm{timer::pinned});
    leave_gate();
    return true;
}

// What was sent and not answered is as if it had never been said.
void session::implementation::forget_transaction() {
    if (again_) again_->active = false;
    ran_ = false;
    statements_.forget_sent();
    drop_link(false);
    status_ = wire::transaction_status::idle;
    in_block_ = unsynced_ = skipping_ = copy_in_ = implicit_wrote_ = level_in_flight_ =
        committed_unready_ = false;
    forecast_ = forecast::idle;
    state_.rollback();
    ddl_.clear();
    portals_.clear();
    unnamed_portal_.reset();
}

void session::implementation::broken_home(std::string_view why) {
    if (begun_ && may_have_committed())
        fatal(texts::broken_home_unknown(why));
    else
        fatal(texts::broken_home(why));
}

// The one error that ends the session. In the middle of a row the client could only misread it.
void session::implementation::fatal(const refusal& why) {
    if (phase_ == phase::ended) return;
    const bool mid_message = link_rest_ > 0 && !link_swallows_;
    unknown_ = unknown_ || why.sqlstate == "08007";
    if (begun_) ++errors_;
    if (!mid_message) texts::append(to_client_.out(), texts::severity::fatal, why);
    end();
}

void session::implementation::end(bool polite_to_link) {
    if (phase_ == phase::ended) return;
    phase_ = phase::ended;
    settle();  // views of buffers that go
    if (pauses()) env_.retried(retry_outcome::given_up, again_->tries);
    if (again_) again_->active = false;
    if (begun_ && tally_.on() && may_have_committed()) tally_.doubt();
    if (held_) {
        held_ = false;
        env_.cancel_wait();
    }
    drop_link(polite_to_link);
    leave_gate();
    inbox_.clear();
    client_rest_ = 0;
    for (const auto which :
         {timer::login, timer::connect, timer::hold, timer::pinned, timer::retry})
        act(disarm{which});
    act(close_client{});
}

bool session::implementation::may_have_committed() const {
    bool block = in_block_;
    const bool engine = link_kind_ == policy::home_kind::engine;
    // The engine may commit each Execute by itself; PostgreSQL waits for the Sync.
    if (committed_unready_ || (engine && implicit_wrote_)) return true;
    bool pending = implicit_wrote_;
    for (std::size_t i = 0; i < owed_.size(); ++i) {
        const auto& entry = owed_.at(i);
        const bool half_sent = i + 1 == owed_.size() && client_rest_ > 0;
        if (entry.hidden() || half_sent) continue;
        if (entry.what == owes::query) {
            if (pending || query_may_commit(entry, block)) return true;
        } else if (entry.what == owes::execute) {
            if (execute_may_commit(entry, block, pending)) return true;
            if (engine && pending) return true;
        } else if (entry.what == owes::function_call) {
            if (!block) return true;
        } else if (entry.what == owes::sync) {
            if (pending) return true;
        }
    }
    return false;
}

bool session::implementation::query_may_commit(const owed& entry, bool& block) const {
    if (entry.failed) return false;
    if (!entry.facts) return true;
    // Statements already completed count too: an implicit transaction commits at the very end.
    bool done_in_block = block;
    for (std::size_t i = 0; i < entry.facts->statements.size(); ++i) {
        const auto& statement = entry.facts->statements[i];
        const bool done = i < entry.done;
        if (statement.what == sql::kind::begin) {
            done_in_block = true;
        } else if (ends_block(statement.what) || statement.what == sql::kind::prepare_transaction) {
            if (!done && wrote_ && statement.what != sql::kind::rollback) return true;
            done_in_block = statement.chain;
        } else if (!done_in_block && writes_data(statement)) {
            return true;
        }
    }
    block = done_in_block;
    return false;
}

bool session::implementation::execute_may_commit(const owed& entry,
                                                 bool& block,
                                                 bool& pending) const {
    if (!entry.statement || !entry.statement->facts) return true;
    for (const auto& statement : entry.statement->facts->statements) {
        using sql::kind;
        const auto what = statement.what;
        if (what == kind::begin) {
            block = true;
        } else if (ends_block(what) || what == kind::prepare_transaction) {
            if (wrote_ && what != kind::rollback) return true;
            block = statement.chain;
        } else if (!block && writes_data(statement)) {
            const bool waits_for_sync = what == kind::insert || what == kind::update ||
                                        what == kind::remove || what == kind::merge ||
                                        what == kind::select;
            if (!waits_for_sync) return true;
            pending = true;
        }
    }
    return false;
}

}  // namespace hotlane::session
