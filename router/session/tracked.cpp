#include "router/session/tracked.hpp"

#include <algorithm>
#include <bit>

namespace hotlane::session {

void tracked_state::note(pending_change change) {
    const auto bytes = change.name.size() + change.sql.size();
    const bool long_parameter =
        change.what == pending_change::kind::set && bytes > parameter_bytes_max;
    if (pending_.size() >= pending_max || pending_bytes_ + bytes > pending_bytes_max ||
        long_parameter) {
        // What is not remembered cannot be restored elsewhere.
        pin_now(pin::other);
        hit_limit_ = true;
        return;
    }
    pending_bytes_ += bytes;
    pending_.push_back(std::move(change));
}

std::size_t tracked_state::find_savepoint(std::string_view name) const noexcept {
    for (std::size_t i = pending_.size(); i-- > 0;)
        if (pending_[i].what == pending_change::kind::savepoint && pending_[i].name == name)
            return i;
    return none_found;
}

void tracked_state::release(std::string_view savepoint) {
    const auto at = find_savepoint(savepoint);
    if (at == none_found) return;
    // Inner savepoints go with it; their changes stay.
    const auto from = pending_.begin() + static_cast<std::ptrdiff_t>(at);
    pending_.erase(std::remove_if(from,
                                  pending_.end(),
                                  [](const pending_change& change) {
                                      return change.what == pending_change::kind::savepoint;
                                  }),
                   pending_.end());
}

void tracked_state::rollback_to(std::string_view savepoint) {
    const auto at = find_savepoint(savepoint);
    if (at != none_found) pending_.resize(at + 1);  // the savepoint itself stays
}

void tracked_state::commit(std::vector<std::string>& ddl) {
    for (auto& change : pending_)
        apply(change, ddl);
    rollback();  // nothing is pending any more
}

void tracked_state::apply(pending_change& change, std::vector<std::string>& ddl) {
    switch (change.what) {
        case pending_change::kind::set:
            set(std::move(change.name), std::move(change.sql));
            break;
        case pending_change::kind::reset:
            if (parameters_)
                std::erase_if(writable(),
                              [&](const auto& one) { return one.first == change.name; });
            break;
        case pending_change::kind::reset_all:
            parameters_.reset();
            break;
        case pending_change::kind::add_pin:
            pin_now(change.reason);
            break;
        case pending_change::kind::clear_pins:
            pins_ = 0;
            break;
        case pending_change::kind::drop_pin:
            pins_ &= ~bit(change.reason);
            break;
        case pending_change::kind::ddl:
            ddl.push_back(std::move(change.sql));
            break;
        case pending_change::kind::savepoint:
            break;
    }
    if (parameters_ && parameters_->empty()) parameters_.reset();
}

// What others share is copied first.
pairs& tracked_state::writable() {
    if (!parameters_ || parameters_.use_count() > 1)
        parameters_ =
            parameters_ ? std::make_shared<pairs>(*parameters_) : std::make_shared<pairs>();
    return *parameters_;
}

// The newest goes last: two names may stand for one setting, and then the order decides.
void tracked_state::set(std::string name, std::string sql) {
    auto& all = writable();
    std::erase_if(all, [&](const auto& one) { return one.first == name; });
    if (all.size() < parameters_max_) {
        all.emplace_back(std::move(name), std::move(sql));
    } else {
        pin_now(pin::other);
        hit_limit_ = true;
    }
}

pin tracked_state::pinned() const noexcept {
    auto all = pins_;
    for (const auto& change : pending_)
        if (change.what == pending_change::kind::add_pin) all |= bit(change.reason);
    return all == 0 ? pin::none : static_cast<pin>(std::countr_zero(all));
}

}  // namespace hotlane::session
