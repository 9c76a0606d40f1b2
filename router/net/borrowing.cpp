// The part of a connection's surroundings that has to do with links it shares with others.
#include <boost/asio/post.hpp>

#include <utility>

#include "router/net/connection.hpp"
#include "router/net/surroundings.hpp"
#include "router/net/worker.hpp"
#include "router/session/texts.hpp"

namespace hotlane::net {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

}  // namespace

void surroundings::find_pool(const session::link_identity& who) {
    const auto generation = target().generation;
    if (pool_ && pool_->route->generation == generation) return;
    leave_pool();
    pool_ = worker_.pools().find(tool_, route_, target_, who);
    ++pool_->users;
}

void surroundings::leave_pool() {
    if (pool_) --pool_->users;
    pool_.reset();
}

session::link_memory* surroundings::borrow(const session::link_identity& who) {
    find_pool(who);
    const auto link = worker_.pools().borrow(pool_, *this, queue_place_);
    if (!link) {
        in_queue_ = true;
        return nullptr;
    }
    here_.attach(link);
    return &link->memory;
}

void surroundings::give_back(session::link_fate fate) {
    if (const auto link = here_.detach()) worker_.pools().give_back(link, fate);
}

void surroundings::stop_waiting() {
    ++offer_serial_;
    if (std::exchange(in_queue_, false)) worker_.pools().stop_waiting(queue_place_);
}

bool surroundings::link_is_coming() {
    return in_queue_ && pool_->waiting <= static_cast<int>(pool_->opening.size());
}

session::pairs_ptr surroundings::greeting(const session::link_identity& who) {
    find_pool(who);
    return pool_->greeting;
}

// From the loop: the pool calls while another connection is in the middle of something.
void surroundings::link_offered(link_ptr link) {
    in_queue_ = false;
    // Without its owner nothing of `this` may be touched.
    auto take = [this,
                 &pools = worker_.pools(),
                 self = owner_.lock(),
                 link = std::move(link),
                 serial = ++offer_serial_] {
        const bool wanted = self && serial == offer_serial_ && self->wants_link();
        wanted ? self->lend(link) : pools.give_back(link, session::link_fate::keep);
    };
    worker_.poll().defer(std::move(take));
}

void surroundings::link_denied(const session::refusal& why, std::string words) {
    in_queue_ = false;
    auto tell =
        [this, self = owner_.lock(), why, words = std::move(words), serial = ++offer_serial_] {
            if (self && serial == offer_serial_) self->deny_link(why, words);
        };
    worker_.poll().defer(std::move(tell));
}

void surroundings::link_delayed(const std::string& notice) {
    auto tell = [this, self = owner_.lock(), notice] {
        if (self && in_queue_) self->delay_link(notice);
    };
    worker_.poll().defer(std::move(tell));
}

// Unique among those who have none of a home's own; such numbers are small there.
std::uint32_t surroundings::process_number() {
    constexpr std::uint32_t first = 0x4000'0000;
    return first | (all_.next_process.fetch_add(1, relaxed) & (first - 1));
}

void surroundings::sequences_matter() {
    if (pool_) pool_->tool->sequences_matter = true;
}
bool surroundings::do_sequences_matter() {
    return pool_ && pool_->tool->sequences_matter;
}

void surroundings::pinned(session::pin reason) {
    unpinned();
    if (reason == session::pin::none) return;
    auto& counted = tool_->counted;
    const auto at = static_cast<std::size_t>(reason);
    counted.pins[at].fetch_add(1, relaxed);
    counted.pinned_by[at].fetch_add(1, relaxed);
    counted.pinned_now.fetch_add(1, relaxed);
    pinned_as_ = reason;
}

void surroundings::unpinned() {
    const auto was = std::exchange(pinned_as_, session::pin::none);
    if (was == session::pin::none) return;
    tool_->counted.pinned_by[static_cast<std::size_t>(was)].fetch_sub(1, relaxed);
    tool_->counted.pinned_now.fetch_sub(1, relaxed);
}

void surroundings::went_on_after_error(std::string_view tag, bool first) {
    auto& counted = tool_->counted;
    if (first) counted.after_error_blocks.fetch_add(1, relaxed);
    counted.after_error[placement::after_error_word(tag)].fetch_add(1, relaxed);
}

session::retry_rule surroundings::retry() {
    const auto& now = tool_->retry;
    if (!now.on.load(relaxed)) return {};
    return {.on = true,
            .attempts = now.attempts.load(relaxed),
            .time = milliseconds(now.time_ms.load(relaxed)),
            .pause_first = milliseconds(now.pause_first_ms.load(relaxed)),
            .pause_max = milliseconds(now.pause_max_ms.load(relaxed)),
            .bytes_max = static_cast<std::size_t>(now.bytes_max.load(relaxed))};
}

std::uint64_t surroundings::dice() {
    return worker_.dice()();
}

void surroundings::retried(session::retry_outcome outcome, int tries) {
    auto& counted = tool_->counted;
    counted.retries[static_cast<std::size_t>(outcome)].fetch_add(1, relaxed);
    counted.retry_tries.fetch_add(static_cast<std::uint64_t>(tries), relaxed);
}

}  // namespace hotlane::net
