// Opening a link of the session's own, or borrowing one from the pool, and letting it go.
#include <algorithm>

#include "router/session/implementation.hpp"

namespace hotlane::session {
namespace {

// Between two tries while the home is starting. Short: the first answer is due within half a
// second of the server being up.
constexpr milliseconds retry_gap{100};

}  // namespace

void session::implementation::start_link() {
    const auto& target = env_.target();
    if (!link_deadline_) link_deadline_ = now_ + limits_.connect_timeout;
    link_ = link_phase::opening;
    link_kind_ = target.kind;
    link_generation_ = target.generation;
    link_inbox_.clear();
    link_rest_ = 0;
    login_.reset();
    link_level_ = level::unknown;
    act(open_link{link_generation_});
    const auto left = std::chrono::duration_cast<milliseconds>(*link_deadline_ - now_);
    act(arm{timer::connect, std::max(left, milliseconds{1})});
}

void session::implementation::link_opened() {
    if (phase_ == phase::ended || link_ != link_phase::opening) return;
    const auto& target = env_.target();
    if (target.generation != link_generation_) {
        start_link();  // the route was swapped while we dialled
        return;
    }
    to_link_.clear();
    link_login::append_startup(to_link_.out(), *identity_, target);
    login_ = std::make_unique<link_login>(tool_.name, target.password, limits_.buffer_bytes);
    link_ = link_phase::login;
}

void session::implementation::login_bytes(std::string_view bytes) {
    switch (login_->feed(bytes, to_link_.out())) {
        case link_login::state::going:
            return;
        case link_login::state::ready:
            login_ready();
            return;
        case link_login::state::again:
            if (link_deadline_ && now_ + retry_gap < *link_deadline_) {
                retry_link(std::string(login_->why().message));
                return;
            }
            break;
        case link_login::state::refused:
            break;
    }
    const auto login = std::move(login_);
    if (phase_ == phase::first_link && !login->words().empty()) {
        to_client_.out().append(login->words());  // the home's own words, once
        end();
        return;
    }
    give_up_link(login->why());
}

void session::implementation::retry_link(std::string_view why) {
    if (!link_deadline_ || now_ + retry_gap >= *link_deadline_) {
        give_up_link(texts::cannot_connect(tool_.name, why));
        return;
    }
    retry_reason_ = why;
    drop_link(false);
    link_ = link_phase::retrying;
    act(arm{timer::connect, retry_gap});
}

void session::implementation::link_failed(std::string_view why) {
    if (phase_ == phase::ended) return;
    const auto reason = retry_reason_.empty() ? std::string(why) : retry_reason_;
    give_up_link(texts::cannot_connect(tool_.name, reason));
}

// No link. At startup that ends the session; later it only refuses the transaction that needed it,
// since nothing of that has been sent.
void session::implementation::give_up_link(const refusal& why) {
    drop_link(false);
    link_deadline_.reset();
    retry_reason_.clear();
    act(disarm{timer::connect});
    if (phase_ == phase::first_link) {
        fatal(why);
        return;
    }
    refusal_ = why;
    pump();
}

void session::implementation::login_ready() {
    const auto login = std::move(login_);
    key_ = login->key();
    link_status_ = shared_list(login->status());
    if (phase_ == phase::first_link) {
        link_is_ready();
        greet(link_status_, login->notices());
        return;
    }
    start_replay();
}

void session::implementation::link_is_ready() {
    link_ = link_phase::ready;
    link_deadline_.reset();
    retry_reason_.clear();
    status_ = wire::transaction_status::idle;
    in_block_ = false;
    if (!is_pooled()) act(disarm{timer::connect});
    if (reads_wrong_ && phase_ == phase::relaying) state_.pin_now(pin::string_syntax);
}

// The link goes, and with it what is under way on it. One that is borrowed goes to its pool, which
// closes it.
void session::implementation::drop_link(bool polite) {
    if (link_ == link_phase::none) return;
    settle();
    const bool farewell = polite && link_ == link_phase::ready;
    if (tool_.pool == pooling::transaction) {
        to_link_.clear();
        if (link_ == link_phase::wanted)
            env_.stop_waiting();
        else
            env_.give_back(farewell ? link_fate::farewell : link_fate::close);
        lent_ = nullptr;
    } else if (farewell) {
        wire::append_empty(to_link_.out(), wire::tag_f::terminate);
    } else {
        to_link_.clear();  // half-sent bytes of a link that goes have nowhere to go
    }
    link_ = link_phase::none;
    login_.reset();
    link_inbox_.clear();
    link_rest_ = 0;
    link_swallows_ = false;
    owed_.clear();
    key_ = {};
    if (tool_.pool == pooling::session) act(close_link{});
}

}  // namespace hotlane::session
