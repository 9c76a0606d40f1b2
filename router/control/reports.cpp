#include "router/control/reports.hpp"

#include <optional>

namespace hotlane::control {

using nlohmann::json;

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::size_t sample_bytes_max = 2'000;
constexpr const char* words[] = {"ddl", "conflict", "write"};

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
    return {from.transactions.load(relaxed),
            from.write_transactions.load(relaxed),
            from.write_conflicts.load(relaxed),
            from.errors.load(relaxed),
            from.unknown_outcomes.load(relaxed),
            from.hold_wait_us.load(relaxed)};
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

void merge_report(placement::tool_entry& into, const json& report, policy::time_point now) try {
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
    for (const auto& said : report.value("seen", json::array()))
        if (auto one = to_observation(said)) into.seen.push(std::move(*one));
    for (const auto& said : report.value("statements", json::array())) {
        const auto types = said.at("types").get<std::vector<std::uint32_t>>();
        into.statements.see(
            said.at("of").get<std::uint64_t>(), said.at("sql").get<std::string>(), types, now);
    }
} catch (const json::exception&) {
    // Another version's report: what was understood so far stays.
}

}  // namespace hotlane::control
