// Counters of an engine of the kind `twill`.
#include <charconv>
#include <string_view>

#include "metrics/pg_link.hpp"

namespace hotlane::metrics {
namespace {

struct counter {
    std::string_view name;
    std::optional<std::uint64_t> policy::sample::*member;
};
constexpr counter counters[] = {
    {"twill_write_lane_acquire_total", &policy::sample::acquires},
    {"twill_write_handoff_total", &policy::sample::handoffs},
    {"twill_write_wait_us_total", &policy::sample::wait_us},
    {"twill_commit_total", &policy::sample::commits},
    {"twill_committed_lsn", &policy::sample::committed_lsn},
};

std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value{};
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (ec != std::errc{} || end != text.data() + text.size()) return {};
    return value;
}

class twill_source : public source {
  public:
    explicit twill_source(source_target target)
        : link_{std::move(target), pg_link::encryption::never} {}

    tl::expected<policy::sample, source_error> read(const clock_function& now,
                                                    policy::duration budget) override {
        const auto start = std::chrono::steady_clock::now();
        const auto rows = link_.query("SHOW twill.stats", start + budget);
        if (!rows) return tl::unexpected<source_error>{rows.error()};
        policy::sample out;
        for (const auto& row : *rows) {
            if (row.size() < 2 || !row[0] || !row[1]) continue;
            for (const auto& c : counters) {
                if (*row[0] == c.name) out.*c.member = number(*row[1]);
            }
        }
        if (!out.acquires && !out.handoffs && !out.wait_us) {
            return tl::unexpected<source_error>{
                source_error{source_error::kind::bad_reply, "no lane counter in the reply"}};
        }
        out.taken_at = now();
        out.cost = std::chrono::duration_cast<std::chrono::microseconds>(
            std::chrono::steady_clock::now() - start);
        out.link_generation = link_.generation();
        return out;
    }

  private:
    pg_link link_;
};

}  // namespace

std::unique_ptr<source> make_twill_source(source_target target) {
    return std::make_unique<twill_source>(std::move(target));
}

}  // namespace hotlane::metrics
