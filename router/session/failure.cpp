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
    if (link_ == link_phase::login || link_ == link_phase::replaying) {
        // Servers that start or stop close connections half-way: within the time, ask again.
        owed_.clear();
        retry_link(why);
        settle();
        return;
    }
    if (begun_) {
        fatal(may_have_committed() ? texts::lost_outcome_unknown()
                                   : texts::lost_nothing_committed());
        return;
    }
    // Idle: nobody need know, unless what the link held is gone with it.
    drop_link(false);
    if (const auto reason = state_.pinned(); reason != pin::none)
        fatal(texts::pinned_link_lost(tool_.name, to_string(reason)));
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
    if (held_) {
        held_ = false;
        env_.cancel_wait();
    }
    drop_link(polite_to_link);
    leave_gate();
    inbox_.clear();
    client_rest_ = 0;
    for (const auto which : {timer::login, timer::connect, timer::hold, timer::pinned})
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
