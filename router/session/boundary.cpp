// Where transactions begin and end. The first message of one passes, in this order: cancels still
// in flight, the gate, the route (is the tool served, is the link the right one), isolation. All of
// it happens before a byte reaches a home, so whoever is refused here has lost nothing.
#include "router/session/implementation.hpp"

namespace hotlane::session {

passage session::implementation::begin(const client_frame& frame) {
    if (refusal_) {
        const auto why = *std::exchange(refusal_, std::nullopt);
        return refuse(frame, why);
    }
    const bool on_its_way = link_ != link_phase::ready && link_ != link_phase::none;
    const bool needs_it = inside_ || is_pooled();
    if (held_ || cancels_ > 0 || (needs_it && on_its_way)) return passage::wait;
    if (!inside_) {
        if (shutting_down_) {
            fatal(texts::shutdown());
            return passage::refused;
        }
        // The link first: who waits for one must not be waited for by a hold. During a hold the
        // gate is the place to wait.
        const bool borrows = is_pooled() && link_ == link_phase::none &&
                             state_.pinned() == pin::none && env_.target().served;
        if (borrows && env_.gate_is_open()) {
            want_link();
            if (link_ != link_phase::ready) return passage::wait;
        }
        switch (env_.enter(frame.rest.size())) {
            case admission::inside:
                inside_ = true;
                break;
            case admission::held:
                if (client_eof_) {  // nobody waits for the answer: never sent
                    env_.cancel_wait();
                    end();
                    return passage::refused;
                }
                held_ = true;
                return_link();
                act(arm{timer::hold, limits_.hold_max});
                return passage::wait;
            case admission::refused:
                return refuse(frame, texts::queue_full(tool_.name));
        }
    }
    const auto route = pass_route();
    if (route == passage::refused) {
        if (phase_ == phase::ended) return route;
        return refuse(frame, texts::not_served(tool_.name, env_.target().reason));
    }
    if (route == passage::wait) return route;
    const bool strange = lent_ && lent_->user != number_ && state_.pinned() == pin::none;
    if (strange && link_kind_ == policy::home_kind::postgres && reads_sequence(frame)) {
        env_.sequences_matter();
        return refuse(frame, texts::sequence_elsewhere());
    }
    if (lent_) lent_->user = number_;
    begun_ = true;
    tally_.begin(link_kind_ == policy::home_kind::engine ? env_.write_watch() : 0);
    link_tries_ = 0;
    pipelined_ = 1;
    forecast_ = forecast::idle;
    set_isolation(frame);
    return passage::go;
}

// Inside the gate: is the link the one that the route names? `refused`: not served, or the session
// has ended.
passage session::implementation::pass_route() {
    const auto& target = env_.target();
    if (!target.served) return passage::refused;
    const bool current = target.generation == link_generation_;
    if (link_ == link_phase::ready && current) return passage::go;
    if (const auto reason = state_.pinned(); reason != pin::none) {
        fatal(current ? texts::pinned_link_lost(tool_.name, to_string(reason))
                      : texts::pinned(tool_.name, to_string(reason)));
        return passage::refused;
    }
    drop_link(true);
    if (!is_pooled()) {
        start_link();
        return passage::wait;
    }
    want_link();
    return link_ == link_phase::ready ? passage::go : passage::wait;
}

// The queued message is answered by us. The session goes on.
passage session::implementation::refuse(const client_frame& frame, const refusal& why) {
    auto& out = to_client_.out();
    texts::append(out, texts::severity::error, why);
    const bool batch = frame.tag != wire::tag_f::query && frame.tag != wire::tag_f::function_call &&
                       frame.tag != wire::tag_f::sync;
    if (batch)
        refusing_ = true;
    else
        wire::append_ready(out, wire::transaction_status::idle);
    errors_ = 1;
    leave_gate();
    return_link();
    return passage::refused;
}

// The transaction before has been sent whole but not all of its replies have come. What follows is
// sent on behind it, as at the home itself, unless the state there is uncertain where it matters,
// or the pass through the gate has become so long that a hold would wait for it.
passage session::implementation::next_in_pipeline(const client_frame& frame) {
    if (owed_.empty()) statements_go_ = false;
    if (statements_go_ && lent_ && !is_continuation(frame.tag)) {
        waits_for_answers();
        return passage::wait;
    }
    const bool between = !unsynced_ && !skipping_ && !copy_in_ && forecast_ != forecast::in_block;
    if (!between || is_continuation(frame.tag)) return passage::go;
    if (owed_.empty()) return passage::go;  // in a block, or at its end: replies have told
    if (pipelined_ >= pipelined_max || cancels_ > 0 || shutting_down_) return passage::wait;
    const bool levels = link_kind_ == policy::home_kind::postgres;
    if (levels && (forecast_ == forecast::unsure || level_in_flight_)) return passage::wait;
    ++pipelined_;
    if (levels && forecast_ == forecast::idle) set_isolation(frame);
    return passage::go;
}

bool session::implementation::at_boundary() const noexcept {
    return owed_.empty() && !in_block_ && status_ == wire::transaction_status::idle && !unsynced_ &&
           !skipping_ && !copy_in_ && client_rest_ == 0 && !pauses();
}

void session::implementation::after_home() {
    if (phase_ != phase::relaying) return;
    if (parting_ && !pauses() && (owed_.empty() || copy_in_)) {
        fatal(*std::exchange(parting_, std::nullopt));
        return;
    }
    if (begun_ && at_boundary()) end_transaction();
    if (phase_ != phase::relaying) return;
    const bool has_waited = inside_ || is_pooled();
    if (!begun_ && has_waited && link_ == link_phase::ready) {
        // The new link is ready: the message that waited for it is still in the inbox. If there is
        // none, it stayed for the aftermath only.
        count_pin();
        if (inbox_.empty() && !begun_) return_link();
        pump();
        if (!begun_ && phase_ == phase::relaying) return_link();
        return;
    }
    if (!inbox_.empty() || client_eof_) pump();
}

void session::implementation::end_transaction() {
    begun_ = false;
    forecast_ = forecast::idle;
    level_in_flight_ = false;
    statements_go_ = false;
    portals_.clear();
    unnamed_portal_.reset();
    if (std::exchange(leaving_, false)) act(disarm{timer::pinned});
    leave_gate();
    count_pin();
    if (shutting_down_) {
        fatal(texts::shutdown());
        return;
    }
    if (state_.pinned() != pin::none && env_.target().generation != link_generation_)
        fatal(texts::pinned(tool_.name, to_string(state_.pinned())));
    else
        return_link();
}

// Exactly once for each time that the gate let us in.
void session::implementation::leave_gate() {
    begun_ = false;
    if (inside_) {
        inside_ = false;
        if (unknown_) tally_.doubt();
        env_.leave({.wrote = wrote_,
                    .conflict = conflict_,
                    .unknown = unknown_,
                    .errors = errors_,
                    .conflicts_retried = retried_,
                    .block = block_,
                    .key = row_key_,
                    .table = table_,
                    .sql = sample_,
                    .writes = tally_.so_far()});
    }
    tally_.end();
    wrote_ = conflict_ = unknown_ = block_ = false;
    forget_block();
    writes_ = 0;
    row_key_ = 0;
    errors_ = retried_ = 0;
    table_.clear();
    sample_.clear();
    if (sample_.capacity() > idle_bytes_max) std::string().swap(sample_);
    if (link_inbox_.capacity() > idle_bytes_max && link_inbox_.empty())
        std::string().swap(link_inbox_);
}

void session::implementation::released() {
    if (!held_) {
        // Too late: the wait was given up while the gate opened. We are inside and must not be.
        if (!inside_) env_.leave({});
        return;
    }
    held_ = false;
    inside_ = true;
    act(disarm{timer::hold});
    pump();
}

void session::implementation::hold_failed(std::string_view why) {
    held_ = false;
    act(disarm{timer::hold});
    refusal_ = texts::held_too_long(tool_.name, why);
    pump();
}

// A session that cannot follow must leave; one that can lets go of the old home at once when it is
// idle, and otherwise follows with its next transaction.
void session::implementation::route_changed() {
    if (phase_ != phase::relaying || link_ != link_phase::ready) return;
    if (env_.target().generation == link_generation_) return;
    if (state_.pinned() == pin::none) {
        if (!inside_) drop_link(true);
        return;
    }
    if (begun_) {
        leaving_ = true;
        act(arm{timer::pinned, limits_.pinned_patience});
    } else {
        fatal(texts::pinned(tool_.name, to_string(state_.pinned())));
    }
}

void session::implementation::shut_down() {
    if (phase_ == phase::ended) return;
    shutting_down_ = true;
    if (phase_ == phase::first_packet) {
        end();
    } else if (phase_ == phase::first_link) {
        fatal(texts::shutdown());
    } else if (!begun_) {
        fatal(texts::shutdown());
    }
}

}  // namespace hotlane::session
