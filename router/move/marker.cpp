#include "router/move/marker.hpp"

#include <fmt/format.h>
#include <charconv>
#include <nlohmann/json.hpp>

#include "router/move/names.hpp"

namespace hotlane::move {
namespace {

constexpr std::string_view undefined_table = "42P01", invalid_schema = "3F000",
                           undefined_column = "42703";

std::optional<marker_state> state_from(std::string_view word) noexcept {
    for (const auto s :
         {marker_state::away, marker_state::staging, marker_state::serving, marker_state::fenced})
        if (word == to_string(s)) return s;
    return std::nullopt;
}

nlohmann::json detail_of(const marker& m) {
    return {{"schema", m.schema}, {"tables", m.tables}};
}

answer<std::optional<marker>> marker_from(const row& r) {
    const auto state = state_from(r.at(2).value_or(""));
    if (!state)
        return tl::unexpected(
            link_error{"", "the marker has a state that is not known here", fate::refused});
    marker out;
    out.state = *state;
    out.move = r.at(0).value_or("");
    const std::string epoch = r.at(1).value_or("0");
    std::from_chars(epoch.data(), epoch.data() + epoch.size(), out.epoch);
    const auto detail = nlohmann::json::parse(r.at(3).value_or("{}"), nullptr, false);
    if (detail.is_object()) {
        if (detail.contains("schema") && detail["schema"].is_string())
            out.schema = detail["schema"].get<std::string>();
        for (const auto& t : detail.value("tables", nlohmann::json::array()))
            if (t.is_string()) out.tables.push_back(t.get<std::string>());
    }
    return std::optional<marker>{out};
}

}  // namespace

std::string_view to_string(marker_state state) noexcept {
    switch (state) {
        case marker_state::away:
            return "away";
        case marker_state::staging:
            return "staging";
        case marker_state::serving:
            return "serving";
        case marker_state::fenced:
            return "fenced";
    }
    return "?";
}

answer<void> send(home_link& link, const std::string& sql) {
    auto reply = link.exec(sql);
    if (!reply) return tl::unexpected(reply.error());
    return {};
}

answer<void> begin(home_link& postgres, std::chrono::milliseconds lock_timeout) {
    return send(postgres,
                fmt::format("BEGIN; SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = {}",
                            lock_timeout.count()));
}

answer<void> commit(home_link& postgres) {
    return send(postgres, "COMMIT");
}

void rollback(home_link& postgres) {
    if (postgres.alive()) static_cast<void>(postgres.exec("ROLLBACK"));
}

answer<void> ensure_marker(home_link& postgres, const std::string& tool, std::uint64_t epoch) {
    auto made = send(
        postgres,
        "CREATE SCHEMA IF NOT EXISTS hotlane; "
        "CREATE TABLE IF NOT EXISTS hotlane.hotlane_home (tool text PRIMARY KEY, move text NOT "
        "NULL DEFAULT '', epoch bigint NOT NULL, state text NOT NULL CHECK (state IN ('away', "
        "'staging', 'serving', 'fenced')), peer text NOT NULL DEFAULT '', changed_at timestamptz "
        "NOT NULL DEFAULT now(), detail text NOT NULL DEFAULT '{}')");
    if (!made) return made;
    auto put = postgres.exec(
        "INSERT INTO hotlane.hotlane_home (tool, epoch, state, peer) VALUES ($1, $2, 'away', "
        "'engine') ON CONFLICT (tool) DO NOTHING",
        {{param_type::text, tool}, {param_type::int8, std::to_string(epoch)}});
    if (!put) return tl::unexpected(put.error());
    return {};
}

answer<std::optional<marker>> read_marker(home_link& postgres, const std::string& tool, bool wait) {
    auto reply = postgres.exec(
        fmt::format("SELECT move, epoch, state, detail FROM hotlane.hotlane_home WHERE tool = $1{}",
                    wait ? " FOR UPDATE" : ""),
        {{param_type::text, tool}});
    if (!reply) {
        const auto& state = reply.error().sqlstate;
        if (state == undefined_table || state == invalid_schema) return std::optional<marker>{};
        return tl::unexpected(reply.error());
    }
    if (reply->data.empty()) return std::optional<marker>{};
    return marker_from(reply->data[0]);
}

answer<std::vector<std::string>> marked_tools(home_link& postgres) {
    auto reply = postgres.exec("SELECT tool FROM hotlane.hotlane_home ORDER BY tool");
    std::vector<std::string> out;
    if (!reply) {
        const auto& state = reply.error().sqlstate;
        if (state == undefined_table || state == invalid_schema) return out;
        return tl::unexpected(reply.error());
    }
    for (const auto& r : reply->data)
        out.push_back(r.at(0).value_or(""));
    return out;
}

answer<bool> claim_marker(home_link& postgres,
                          const std::string& tool,
                          std::uint64_t number,
                          std::uint64_t& seen) {
    seen = 0;
    const auto claim = [&] {
        return postgres.exec(
            "UPDATE hotlane.hotlane_home SET leader = $1 WHERE tool = $2 AND leader < $1",
            {{param_type::int8, std::to_string(number)}, {param_type::text, tool}});
    };
    auto done = claim();
    if (!done && done.error().sqlstate == undefined_column) {
        // A marker from before there were fleets.
        auto added = send(postgres,
                          "ALTER TABLE hotlane.hotlane_home ADD COLUMN IF NOT EXISTS leader bigint "
                          "NOT NULL DEFAULT 0");
        if (!added) return tl::unexpected(added.error());
        done = claim();
    }
    if (!done) {
        const auto& state = done.error().sqlstate;
        if (state == undefined_table || state == invalid_schema) return false;
        return tl::unexpected(done.error());
    }
    if (done->affected == 1) return true;
    auto there = postgres.exec("SELECT leader FROM hotlane.hotlane_home WHERE tool = $1",
                               {{param_type::text, tool}});
    if (!there) return tl::unexpected(there.error());
    if (there->data.empty()) return false;
    const std::string text = there->data[0].at(0).value_or("0");
    std::from_chars(text.data(), text.data() + text.size(), seen);
    return false;
}

answer<bool> change_marker(home_link& postgres,
                           const std::string& tool,
                           const marker& expected,
                           const marker& next) {
    const bool to_engine = next.state == marker_state::away || next.state == marker_state::staging;
    std::string sql =
        "UPDATE hotlane.hotlane_home SET state = $1, move = $2, epoch = $3, peer = $4, detail = "
        "$5, changed_at = now() WHERE tool = $6 AND state = $7 AND move = $8 AND epoch = $9";
    std::vector<param> params{{param_type::text, std::string(to_string(next.state))},
                              {param_type::text, next.move},
                              {param_type::int8, std::to_string(next.epoch)},
                              {param_type::text, to_engine ? "engine" : "postgres"},
                              {param_type::text, detail_of(next).dump()},
                              {param_type::text, tool},
                              {param_type::text, std::string(to_string(expected.state))},
                              {param_type::text, expected.move},
                              {param_type::int8, std::to_string(expected.epoch)}};
    if (expected.leader > 0) {
        sql += " AND leader = $10";
        params.push_back({param_type::int8, std::to_string(expected.leader)});
    }
    auto reply = postgres.exec(sql, params);
    if (!reply) return tl::unexpected(reply.error());
    return reply->affected == 1;
}

}  // namespace hotlane::move
