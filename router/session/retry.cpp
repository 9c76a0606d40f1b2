// Lever 1: an autocommit statement that ended in a write conflict is sent again. The home has
// rolled it back whole, so nothing is done twice; the client sees only the try that counts.
//
// A candidate is one simple query of one statement, or Bind to Sync of a batch with one Execute, at
// the beginning of a transaction. Its bytes and its replies are kept until ReadyForQuery; when they
// grow too long, or the batch turns out to be more, the replies are let go and it is an ordinary
// transaction again. What the client sends behind it waits, so that the order stays.
#include <algorithm>

#include "router/session/implementation.hpp"
#include "router/wire/sqlstate.hpp"

namespace hotlane::session {
namespace {

// What a home rolls back whole when it fails by itself; CALL and DO may commit on their own.
bool can_be_sent_again(const sql::facts* facts, bool reads_too) {
    if (!facts || !facts->parsed || facts->statements.size() != 1) return false;
    const auto& one = facts->statements.front();
    using sql::kind;
    const bool writes = one.what == kind::insert || one.what == kind::update ||
                        one.what == kind::remove || one.what == kind::merge ||
                        (one.what == kind::select && one.may_write);
    const bool reads = reads_too && one.what == kind::select;
    return (writes || reads) && !one.temporary && !one.takes_advisory_lock &&
           !one.changes_session && !one.parameter;
}

}  // namespace

// A Query or a Bind at the beginning of a transaction: is it worth keeping?
void session::implementation::consider_retry(const client_frame& frame, const sql::facts* facts) {
    again_missed_ = false;
    if (again_ && again_->active) return;
    if (in_block_ || forecast_ != forecast::idle || pipelined_ > 1 || ran_) return;
    const bool unsure = !env_.is_confirmed();  // in a fleet it reads a clock: only where it counts
    if (!can_be_sent_again(facts, unsure)) return;
    for (std::size_t i = 0; i < owed_.size(); ++i) {
        const auto& entry = owed_.at(i);
        const bool prepares = entry.what == owes::parse || entry.what == owes::close ||
                              entry.what == owes::describe_statement;
        if (!entry.hidden() && !prepares) return;
    }
    auto rule = env_.retry();
    if (!rule.on && !unsure) return;
    if (!rule.on) rule.bytes_max = unconfirmed_bytes_max;
    if (!frame.complete || frame.total > rule.bytes_max) {
        again_missed_ = rule.on;
        return;
    }
    if (!again_) again_ = std::make_unique<retry_state>();
    again_->active = true;
    again_->complete = again_->moved = false;
    again_->lever = rule.on;
    again_->unsure = unsure;
    again_->rule = rule;
    again_->tries = 0;
    again_->began = now_;
    again_->request.clear();
    again_->asked.clear();
    again_->replies.clear();
    again_->messages.clear();
}

// A message of the candidate, as it goes to the link.
void session::implementation::keep_for_retry(const owed& entry,
                                             std::string_view bytes,
                                             const client_frame& frame) {
    auto& all = *again_;
    if (all.request.size() + bytes.size() > all.rule.bytes_max) {
        drop_retry(true);
        return;
    }
    all.request.append(bytes);
    if (all.unsure) all.asked.append(frame.at_hand);
    all.messages.push_back(entry);
}

// No candidate any more: what was kept back is the client's.
void session::implementation::drop_retry(bool too_large) {
    if (!again_ || !again_->active) return;
    again_->active = false;
    again_missed_ = too_large && again_->lever;
    if (!again_->replies.empty()) to_client_.out().append(again_->replies);
    again_->replies.clear();
}

bool session::implementation::keeps_back(const owed& entry) const noexcept {
    return again_ && again_->active && entry.again;
}

void session::implementation::keep_back(std::string_view bytes) {
    if (again_->replies.size() + bytes.size() > again_->rule.bytes_max) {
        drop_retry(true);
        to_client_.pass(bytes);
        return;
    }
    again_->replies.append(bytes);
}

bool session::implementation::is_conflict(const wire::error_fields& fields) const {
    const bool serialization = fields.sqlstate == wire::sqlstate::serialization_failure;
    // On the engine the same code also says `fenced` and `durability`: stored, perhaps.
    if (link_kind_ == policy::home_kind::engine)
        return serialization && fields.message.starts_with("write conflict");
    return serialization || fields.sqlstate == wire::sqlstate::deadlock_detected;
}

// The candidate ended in this error. True: it is kept from the client, another try follows.
bool session::implementation::try_again(const wire::error_fields& fields, std::string_view whole) {
    auto& all = *again_;
    if (all.unsure && begun_anew_ < begun_anew_max && !client_eof_ && tells_of_fence(fields) &&
        env_.left_home()) {
        all.failed = all.moved = true;
        all.replies.clear();
        return true;
    }
    if (!all.lever || !is_conflict(fields)) {
        drop_retry(false);
        return false;
    }
    const auto shift = std::min(all.tries, 16);
    const auto edge = std::min(all.rule.pause_first * (1 << shift), all.rule.pause_max);
    const auto range = static_cast<std::uint64_t>(std::max<milliseconds::rep>(edge.count(), 1));
    all.pause = milliseconds(static_cast<milliseconds::rep>(range / 2 + env_.dice() % range) + 1);
    const bool in_time = now_ - all.began + all.pause < all.rule.time;
    if (all.tries >= all.rule.attempts || !in_time || client_eof_) {
        env_.retried(retry_outcome::exhausted, all.tries);
        drop_retry(false);
        return false;
    }
    ++retried_;
    all.failed = true;
    all.error.assign(whole);
    all.replies.clear();
    return true;
}

// ReadyForQuery of the candidate. True: the client does not hear of it.
bool session::implementation::retry_ready() {
    auto& all = *again_;
    if (!all.failed) {
        if (all.tries > 0) env_.retried(retry_outcome::recovered, all.tries);
        drop_retry(false);
        return false;
    }
    if (all.moved) {
        begin_anew();
        return true;
    }
    all.waiting = true;
    act(arm{timer::retry, all.pause});
    return true;
}

void session::implementation::send_again() {
    auto& all = *again_;
    if (!all.active || !all.waiting) return;
    all.waiting = all.failed = false;
    ++all.tries;
    to_link_.out().append(all.request);
    for (const auto& entry : all.messages) {
        if (entry.what == owes::bind) set_portal("", entry.statement);
        owed_.push(entry);
    }
}

// During a pause nothing runs at the home, and the failed try left nothing there.
void session::implementation::end_pause(std::string_view error) {
    auto& all = *again_;
    env_.retried(retry_outcome::given_up, all.tries);
    all.active = all.waiting = all.failed = false;
    act(disarm{timer::retry});
    conflict_ = true;
    ++errors_;
    to_client_.out().append(error);
    wire::append_ready(to_client_.out(), wire::transaction_status::idle);
}

}  // namespace hotlane::session
