#include "router/session/session.hpp"

#include "router/session/implementation.hpp"

namespace hotlane::session {

// ---- events: each notes the time, does its work, and settles what views it holds ----

void session::implementation::client_bytes(std::string_view bytes) {
    if (phase_ == phase::ended || client_eof_ || bytes.empty()) return;
    if (!inbox_.empty() || phase_ == phase::first_link) {
        inbox_.append(bytes);
        pump();
        return;
    }
    auto taken = std::size_t{0};
    if (phase_ == phase::first_packet) taken = take_first_packets(bytes);
    if (phase_ == phase::relaying) taken += take_client(bytes.substr(taken));
    settle();
    if (phase_ != phase::ended) inbox_.append(bytes.substr(taken));
}

// Out of line: GCC 12 sees uninitialised strings in a variant that it moves itself.
[[gnu::noinline]] void session::implementation::act(action what) {
    actions_.push_back(std::move(what));
}

void session::implementation::pump() {
    auto taken = std::size_t{0};
    if (phase_ == phase::first_packet) taken = take_first_packets(inbox_);
    if (phase_ == phase::relaying) taken += take_client(std::string_view(inbox_).substr(taken));
    settle();
    inbox_.erase(0, taken);
    if (inbox_.empty() && inbox_.capacity() > idle_bytes_max) std::string().swap(inbox_);
    // A client that has sent its last message is served to the end, then let go.
    const bool nothing_left = inbox_.empty() || frame_incomplete_;
    const bool nothing_owed = owed_.empty() || copy_in_;
    if (phase_ == phase::relaying && client_eof_ && nothing_left && nothing_owed && !held_) {
        const bool polite = status_ == wire::transaction_status::idle && !unsynced_ && !copy_in_;
        end(polite);
    }
}

void session::implementation::client_eof() {
    if (phase_ == phase::ended) return;
    const bool again = client_eof_;
    client_eof_ = true;
    // A message that waits for the gate or behind others for a link has not been sent: it never
    // will be. But who has only shut his sending side is still answered, so what is about to be
    // sent, on a link that is being opened or made ready for it, is sent.
    const bool waits = link_ == link_phase::wanted && !env_.link_is_coming();
    const bool queued = held_ || (phase_ == phase::relaying && !begun_ && (inside_ || waits));
    if (phase_ == phase::first_packet || queued || again) {
        end();
        return;
    }
    if (client_rest_ > 0 || pauses()) {  // in the middle of a message, or of nothing
        end();
        return;
    }
    if (phase_ == phase::first_link && inbox_.empty()) {
        end();
        return;
    }
    pump();
    // No Sync will come: have the home give what it keeps in its buffer.
    if (phase_ == phase::relaying && unsynced_)
        wire::append_empty(to_link_.out(), wire::tag_f::flush);
}

void session::implementation::link_bytes(std::string_view bytes) {
    const bool is_open =
        link_ == link_phase::login || link_ == link_phase::replaying || link_ == link_phase::ready;
    if (phase_ == phase::ended || !is_open) return;
    if (link_ == link_phase::login) {
        login_bytes(bytes);
    } else if (link_inbox_.empty()) {
        const auto taken = take_home(bytes);
        settle();
        if (link_ != link_phase::none) link_inbox_.append(bytes.substr(taken));
    } else {
        link_inbox_.append(bytes);
        const auto taken = take_home(link_inbox_);
        settle();
        link_inbox_.erase(0, taken);
    }
    after_home();
}

void session::implementation::timer_fired(timer which) {
    if (phase_ == phase::ended) return;
    switch (which) {
        case timer::login:
            if (phase_ == phase::first_packet) end();
            return;
        case timer::connect:
            if (link_ == link_phase::none || link_ == link_phase::ready) return;
            if (link_ == link_phase::retrying && link_deadline_ && now_ < *link_deadline_)
                start_link();
            else if (link_deadline_ && now_ >= *link_deadline_)
                link_failed("it did not answer in time");
            return;
        case timer::hold:
            if (held_) {
                env_.cancel_wait();
                hold_failed("");
            }
            return;
        case timer::retry:
            if (pauses()) send_again();
            return;
        case timer::pinned:
            if (state_.pinned() != pin::none && link_generation_ != env_.target().generation)
                fatal(may_have_committed() ? texts::lost_outcome_unknown()
                                           : texts::pinned(tool_.name, to_string(state_.pinned())));
            return;
    }
}

// A held client's bytes stay in the inbox up to the mark; a message that must be read whole may
// fill it further. Neither side waits for the other's reader: each looks at its own output only.
bool session::implementation::wants_client() const noexcept {
    if (phase_ == phase::ended || client_eof_) return false;
    if (to_link_.size() >= limits_.buffer_bytes || owed_.size() >= owed_max) return false;
    const bool collecting = phase_ == phase::relaying && frame_incomplete_;
    return collecting || inbox_.size() < limits_.buffer_bytes;
}

bool session::implementation::wants_link() const noexcept {
    return link_ != link_phase::none && to_client_.size() < limits_.buffer_bytes;
}

std::uint64_t next_session_number() noexcept {
    thread_local std::uint64_t last = 0;
    return ++last;
}

// ---- the public face ----

session::session(environment& env, const bounds& limits, bool client_is_local)
    : self_(std::make_unique<implementation>(env, limits, client_is_local)) {}

session::~session() {
    if (self_->phase_ != phase::ended) self_->end();
}

void session::on_start(time_point now) {
    self_->now_ = now;
    self_->act(arm{timer::login, self_->limits_.login_timeout});
}
void session::on_client_bytes(std::string_view bytes, time_point now) {
    self_->now_ = now;
    self_->client_bytes(bytes);
}
void session::on_client_eof(time_point now) {
    self_->now_ = now;
    self_->client_eof();
}
void session::on_link_open(time_point now) {
    self_->now_ = now;
    self_->link_opened();
}
void session::on_link_failed(std::string_view why, time_point now) {
    self_->now_ = now;
    if (self_->link_ != link_phase::none) self_->link_failed(why);
}
void session::on_link_bytes(std::string_view bytes, time_point now) {
    self_->now_ = now;
    self_->link_bytes(bytes);
}
void session::on_link_lost(std::string_view why, time_point now) {
    self_->now_ = now;
    self_->link_lost(why);
    self_->after_home();  // what the client has sent meanwhile begins a new transaction
}
void session::on_link_lent(link_memory& link, time_point now) {
    self_->now_ = now;
    self_->link_lent(link);
    self_->settle();
    self_->after_home();
}
void session::on_link_refused(const refusal& why, std::string_view words, time_point now) {
    self_->now_ = now;
    self_->link_refused(why, words);
}
void session::on_link_wait(std::string_view notice, time_point now) {
    self_->now_ = now;
    const bool told = self_->phase_ == phase::relaying && self_->link_ == link_phase::wanted;
    if (told) self_->to_client_.out().append(notice);
}
void session::on_released(time_point now) {
    self_->now_ = now;
    self_->released();
}
void session::on_hold_failed(std::string_view why, time_point now) {
    self_->now_ = now;
    if (self_->held_) self_->hold_failed(why);
}
void session::on_route_changed(time_point now) {
    self_->now_ = now;
    self_->route_changed();
}
void session::on_timer(timer which, time_point now) {
    self_->now_ = now;
    self_->timer_fired(which);
}
void session::on_shutdown(time_point now) {
    self_->now_ = now;
    self_->shut_down();
}
void session::on_cancel_started() {
    ++self_->cancels_;
}
void session::on_cancel_finished(time_point now) {
    self_->now_ = now;
    if (self_->cancels_ == 0 || --self_->cancels_ > 0 || self_->phase_ == phase::ended) return;
    if (!self_->begun_) self_->return_link();
    self_->pump();
}
bool session::on_cancel_queued(time_point now) {
    self_->now_ = now;
    return self_->cancel_queued();
}

std::vector<action> session::take_actions() {
    return std::exchange(self_->actions_, {});
}
std::string_view session::to_client() const noexcept {
    return self_->to_client_.view();
}
std::string_view session::to_link() const noexcept {
    return self_->to_link_.view();
}
void session::consume_to_client(std::size_t bytes) noexcept {
    self_->to_client_.consume(bytes);
}
void session::consume_to_link(std::size_t bytes) noexcept {
    self_->to_link_.consume(bytes);
}
bool session::wants_client_bytes() const noexcept {
    return self_->wants_client();
}
bool session::wants_link_bytes() const noexcept {
    return self_->wants_link();
}
bool session::ended() const noexcept {
    return self_->phase_ == phase::ended;
}
bool session::in_transaction() const noexcept {
    return self_->inside_;
}
pin session::pinned() const noexcept {
    return self_->state_.pinned();
}
// A cancel may only reach what the client is waiting for: nothing between transactions, nothing of
// our own.
link_key session::cancel_target() const {
    const auto& self = *self_;
    if (!self.begun_ || self.link_ != link_phase::ready || self.owed_.empty()) return {};
    return self.key_;
}
std::string_view session::tool() const noexcept {
    return self_->tool_.name;
}

}  // namespace hotlane::session
