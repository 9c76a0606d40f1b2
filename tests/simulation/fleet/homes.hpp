// Both homes of one tool, as far as a fleet can get them wrong: who accepts writes, which rows are
// where, the marker with its leader's number, and names at the engine that a late rename may hit.
// Each function is one transaction or one DDL: done or refused. (What happens inside a move between
// its statements is the subject of tests/simulation/move.)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "router/move/marker.hpp"

namespace sim {

using rows = std::set<std::uint64_t>;
using hotlane::move::marker;
using hotlane::move::marker_state;

struct engine_home {
    std::optional<rows> real = rows{};                // nullopt: a tombstone stands there
    std::map<std::string, std::optional<rows>> kept;  // fenced names; nullopt: sealed
    std::map<std::string, rows> staged;

    [[nodiscard]] bool accepts() const { return real.has_value(); }
    // real -> kept[m], tombstone in. The rename needs its source, and its target's name free.
    bool fence(const std::string& m) {
        if (!real || kept.count(m) > 0) return false;
        kept[m] = std::move(*real);
        real.reset();
        return true;
    }
    // The data gets its name back; the name that a late rename could lead to is taken.
    bool undo(const std::string& m) {
        auto& there = kept.try_emplace(m, std::nullopt).first->second;
        if (there && real) return false;
        if (there) real = std::move(there);
        there.reset();
        return true;
    }
    bool open(const std::string& m) {
        const auto there = staged.find(m);
        if (there == staged.end()) return real.has_value();
        if (real) return false;
        real = std::move(there->second);
        staged.erase(there);
        return true;
    }
};

struct postgres_home {
    marker mark{marker_state::away, "", 1, {}, "public"};
    std::optional<rows> real;
    std::map<std::string, rows> staged;
    bool fenced{false};
    bool checks_leader{true};  // a known fault turns it off

    [[nodiscard]] bool accepts() const { return real.has_value() && !fenced; }
    bool claim(std::uint64_t number) {
        if (mark.leader >= number) return false;
        mark.leader = number;
        return true;
    }
    [[nodiscard]] bool is(marker_state s, const std::string& m, std::uint64_t leader) const {
        const bool mine = !checks_leader || mark.leader == leader;
        return mine && mark.state == s && mark.move == m;
    }
    bool stage(const marker& seen, const std::string& m, std::uint64_t leader) {
        if (!is(marker_state::away, seen.move, leader) || mark.epoch != seen.epoch) return false;
        mark.state = marker_state::staging;
        mark.move = m;
        staged[m] = {};
        return true;
    }
    bool copy(const std::string& m, std::uint64_t leader, const rows& from) {
        if (!is(marker_state::staging, m, leader)) return false;
        staged[m] = from;
        return true;
    }
    bool flip_out(const std::string& m, std::uint64_t leader) {
        if (!is(marker_state::staging, m, leader)) return false;
        mark.state = marker_state::serving;
        ++mark.epoch;
        real = std::move(staged[m]);
        staged.erase(m);
        fenced = false;
        return true;
    }
    bool undo_stage(const std::string& m, std::uint64_t leader) {
        if (!is(marker_state::staging, m, leader)) return false;
        mark.state = marker_state::away;
        staged.erase(m);
        return true;
    }
    bool fence(const marker& seen, const std::string& m, std::uint64_t leader) {
        if (!is(marker_state::serving, seen.move, leader) || mark.epoch != seen.epoch) return false;
        mark.state = marker_state::fenced;
        mark.move = m;
        fenced = true;
        return true;
    }
    bool unfence(const std::string& m, std::uint64_t leader) {
        if (!is(marker_state::fenced, m, leader)) return false;
        mark.state = marker_state::serving;
        fenced = false;
        return true;
    }
    bool flip_back(const std::string& m, std::uint64_t leader) {
        if (!is(marker_state::fenced, m, leader)) return false;
        mark.state = marker_state::away;
        ++mark.epoch;
        real.reset();
        return true;
    }
};

}  // namespace sim
