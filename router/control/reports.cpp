#include "router/control/reports.hpp"

#include <chrono>
#include <functional>
#include <optional>

namespace hotlane::control {

using nlohmann::json;

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::size_t sample_bytes_max = 2'000;
constexpr const char* words[] = {"ddl", "conflict", "write"};

std::int64_t micros(policy::time_point at) {
    return std::chrono::duration_cast<std::chrono::microseconds>(at.time_since_epoch()).count();
}

json to_json(const placement::observation& seen) {
    return {{"what", words[static_cast<std::size_t>(seen.what)]},
            {"table", seen.table},
            {"sql", seen.sql.substr(0, sample_bytes_max)},
            {"at", seen.at.time_since_epoch().count()}};
}

std::optional<placement::observation> to_observation(const json& said) {
    if (!said.is_object()) return std::nullopt;
    placement::observation out;
    const auto what = said.value("what", "");
    if (what == words[1]) {
        out.what = placement::observation::kind::conflict;
    } else if (what == words[2]) {
        out.what = placement::observation::kind::write;
    } else {
        return std::nullopt;  // DDL goes into the store's own list, in order
    }
    out.table = said.value("table", "");
    out.sql = said.value("sql", "");
    out.at = policy::time_point{policy::duration{said.value("at", std::int64_t{0})}};
    return out;
}

}  // namespace

counted_now read_counters(const placement::counters& from) {
    const auto now = placement::traffic_of(from);
    return {now.transactions,
            now.write_transactions,
            now.write_conflicts,
            now.errors,
            now.unknown_outcomes,
            now.hold_wait_us};
}

json make_report(const counted_now& before,
                 const counted_now& now,
                 std::vector<placement::observation> seen,
                 std::size_t most) {
    if (before == now && seen.empty()) return nullptr;
    json counts = json::array();
    for (std::size_t i = 0; i < now.size(); ++i)
        counts.push_back(now[i] - before[i]);
    json list = json::array();
    for (const auto& one : seen)
        if (list.size() < most) list.push_back(to_json(one));
    json out{{"counts", std::move(counts)}};
    if (!list.empty()) out["seen"] = std::move(list);
    if (seen.size() > most) out["left_out"] = seen.size() - most;
    return out;
}

void add_statements(json& report,
                    const std::vector<placement::seen_statement>& lately,
                    policy::time_point since,
                    std::size_t most) {
    json list = json::array();
    for (const auto& one : lately)
        if (one.at > since && list.size() < most)
            list.push_back({{"of", one.fingerprint}, {"sql", one.sql}, {"types", one.types}});
    if (!list.empty()) report["statements"] = std::move(list);
}

void add_after_error(json& report,
                     const placement::after_error_counts& before,
                     const placement::after_error_counts& now) {
    if (before == now) return;
    json more = json::array();
    for (std::size_t i = 0; i < now.size(); ++i)
        more.push_back(now[i] - before[i]);
    report["after_error"] = std::move(more);
}

void add_writes(json& report,
                const std::vector<policy::write_interval>& writes,
                std::uint64_t dropped,
                policy::time_point now,
                std::size_t most) {
    const auto now_us = micros(now);
    json list = json::array();
    for (const auto& w : writes)
        if (list.size() < most)
            list.push_back({w.session,
                            now_us - w.start_us,
                            w.end_us - w.start_us,
                            w.key,
                            (w.conflict ? 1 : 0) + (w.block ? 2 : 0)});
    const auto lost = dropped + writes.size() - list.size();
    if (!list.empty()) report["writes"] = std::move(list);
    if (lost > 0) report["writes_lost"] = lost;
}

void merge_report(placement::tool_entry& into,
                  const json& report,
                  const std::string& sidecar,
                  policy::time_point now) try {
    if (!report.is_object()) return;
    const auto counts = report.find("counts");
    if (counts != report.end() && counts->is_array() && counts->size() == counted_now{}.size()) {
        auto& to = into.elsewhere;
        std::atomic<std::uint64_t>* const fields[] = {&to.transactions,
                                                      &to.write_transactions,
                                                      &to.write_conflicts,
                                                      &to.errors,
                                                      &to.unknown_outcomes,
                                                      &to.hold_wait_us};
        for (std::size_t i = 0; i < counts->size(); ++i)
            fields[i]->fetch_add((*counts)[i].get<std::uint64_t>(), relaxed);
    }
    const auto went_on = report.value("after_error", json::array());
    if (went_on.size() == placement::after_error_counts{}.size()) {
        auto& to = into.elsewhere;
        to.after_error_blocks.fetch_add(went_on[0].get<std::uint64_t>(), relaxed);
        for (std::size_t i = 0; i < to.after_error.size(); ++i)
            to.after_error[i].fetch_add(went_on[i + 1].get<std::uint64_t>(), relaxed);
    }
    for (const auto& said : report.value("seen", json::array()))
        if (auto one = to_observation(said)) into.seen.push(std::move(*one));
    for (const auto& said : report.value("statements", json::array())) {
        const auto types = said.at("types").get<std::vector<std::uint32_t>>();
        into.statements.see(
            said.at("of").get<std::uint64_t>(), said.at("sql").get<std::string>(), types, now);
    }
    const auto of = std::hash<std::string>{}(sidecar);
    for (const auto& said : report.value("writes", json::array())) {
        const auto start = micros(now) - said.at(1).get<std::int64_t>();
        const auto flags = said.at(4).get<int>();
        into.writes.push({.session = said.at(0).get<std::uint64_t>() ^ of,
                          .start_us = start,
                          .end_us = start + said.at(2).get<std::int64_t>(),
                          .key = said.at(3).get<std::uint64_t>(),
                          .conflict = (flags & 1) != 0,
                          .block = (flags & 2) != 0});
    }
    into.writes.count_dropped(report.value("writes_lost", std::uint64_t{0}));
} catch (const json::exception&) {
    // Another version's report: what was understood so far stays.
}

}  // namespace hotlane::control
