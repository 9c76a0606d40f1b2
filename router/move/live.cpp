#include "router/move/live.hpp"

namespace hotlane::move {

void live_figures::begin(std::string doing, std::uint64_t of) {
    const std::lock_guard lock(mutex_);
    doing_ = std::move(doing);
    of_ = of;
    begun_ = clock::now();
    rows_ = 0;
}

void live_figures::end() {
    const std::lock_guard lock(mutex_);
    doing_.clear();
    of_ = 0;
    rows_ = 0;
}

void live_figures::wait_for(std::string what) {
    const std::lock_guard lock(mutex_);
    waits_for_ = std::move(what);
}

live_figures::view live_figures::now() const {
    const std::lock_guard lock(mutex_);
    view out;
    out.doing = doing_;
    out.waits_for = waits_for_;
    if (doing_.empty()) return out;
    out.rows = rows_.load(std::memory_order_relaxed);
    out.of = of_;
    out.took = clock::now() - begun_;
    return out;
}

std::optional<double> live_figures::view::rows_per_second() const {
    const double seconds = std::chrono::duration<double>(took).count();
    if (doing.empty() || rows == 0 || seconds <= 0) return std::nullopt;
    return static_cast<double>(rows) / seconds;
}

std::optional<double> live_figures::view::rest_seconds() const {
    const auto rate = rows_per_second();
    if (!rate || of < rows) return std::nullopt;
    return static_cast<double>(of - rows) / *rate;
}

}  // namespace hotlane::move
