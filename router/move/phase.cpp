#include "router/move/phase.hpp"

#include <array>

namespace hotlane::move {
namespace {

struct phase_row {
    phase p;
    std::string_view word;
    journal_point point;
};
// A phase is journalled before it starts: `fence` in the journal means that it may have begun.
constexpr std::array<phase_row, 14> rows{{
    {phase::preflight, "preflight", journal_point::before_fence},
    {phase::stage, "stage", journal_point::before_fence},
    {phase::rehearse, "rehearse", journal_point::before_fence},
    {phase::ahead, "ahead", journal_point::before_fence},
    {phase::hold, "hold", journal_point::before_fence},
    {phase::fence, "fence", journal_point::fenced},
    {phase::settle, "settle", journal_point::fenced},
    {phase::copy, "copy", journal_point::fenced},
    {phase::verify, "verify", journal_point::fenced},
    {phase::commit, "commit", journal_point::committing},
    {phase::open, "open", journal_point::committed},
    {phase::release, "release", journal_point::committed},
    {phase::clean, "clean", journal_point::committed},
    {phase::done, "done", journal_point::committed},
}};

}  // namespace

std::string_view to_string(phase p) noexcept {
    for (const auto& r : rows)
        if (r.p == p) return r.word;
    return "?";
}

std::optional<phase> phase_from(std::string_view word) noexcept {
    for (const auto& r : rows)
        if (r.word == word) return r.p;
    return std::nullopt;
}

journal_point point_of(phase p) noexcept {
    for (const auto& r : rows)
        if (r.p == p) return r.point;
    return journal_point::committing;
}

}  // namespace hotlane::move
