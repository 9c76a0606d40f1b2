#include "router/move/sessions.hpp"

#include <fmt/format.h>

#include "router/move/preflight.hpp"

namespace hotlane::move {
namespace {

// Who cannot follow between two transactions is asked to leave, and comes back by itself.
void note_pinned(preflight& f) {
    const auto& counted = f.with.tool.counted;
    auto now = nlohmann::json::object(), so_far = nlohmann::json::object();
    std::string text;
    for (std::size_t i = 0; i < placement::pin_reasons.size(); ++i) {
        const std::string reason(placement::pin_reasons[i]);
        if (const auto n = counted.pins[i].load(); n > 0) so_far[reason] = n;
        const auto held = counted.pinned_by[i].load();
        if (held <= 0) continue;
        now[reason] = held;
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", held, reason);
    }
    const auto pinned = counted.pinned_now.load();
    f.found.detail["sessions"] = {{"open", counted.sessions.load()},
                                  {"pinned", pinned},
                                  {"pinned_by", std::move(now)},
                                  {"pins_so_far", std::move(so_far)}};
    if (pinned > 0)
        f.found.made.notes.push_back(
            fmt::format("{} sessions cannot follow ({}): they get 57P01 after the move and have to "
                        "connect again",
                        pinned,
                        text));
}

void note_after_error(preflight& f) {
    const auto seen = after_error_of(f.with.tool);
    f.found.detail["sessions"]["after_error"] = {{"blocks", seen.blocks},
                                                 {"statements", seen.statements}};
    if (seen.blocks > 0)
        f.found.made.notes.push_back(fmt::format(
            "{} blocks (BEGIN .. COMMIT) went on after an error, with {}: PostgreSQL answers all "
            "that follows an error with 25P02, and its COMMIT rolls back; a ROLLBACK TO a "
            "savepoint "
            "is what both homes understand",
            seen.blocks,
            seen.in_words()));
}

}  // namespace

std::string after_error_seen::in_words() const {
    std::string out;
    for (const auto& [word, n] : statements)
        out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, word);
    return out;
}

after_error_seen after_error_of(const placement::tool_entry& tool) {
    after_error_seen out;
    for (const auto* from : {&tool.counted, &tool.elsewhere}) {
        out.blocks += from->after_error_blocks.load();
        for (std::size_t i = 0; i < placement::after_error_words.size(); ++i)
            if (const auto n = from->after_error[i].load(); n > 0)
                out.statements[std::string(placement::after_error_words[i])] += n;
    }
    return out;
}

void note_sessions(preflight& f) {
    note_pinned(f);
    if (f.what.to == policy::home_kind::postgres) note_after_error(f);
}

}  // namespace hotlane::move
