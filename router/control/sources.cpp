#include "router/control/sources.hpp"

#include <fmt/format.h>

#include "config/load.hpp"
#include "metrics/source.hpp"

namespace hotlane::control {

namespace {

read_counters never(std::string why) {
    return [why = std::move(why)]() -> tl::expected<policy::sample, std::string> {
        return tl::unexpected(why);
    };
}

metrics::source_target engine_target(const config::tool& tool) {
    metrics::source_target out;
    out.host = tool.engine.at.host;
    out.port = tool.engine.at.port;
    out.user = tool.engine.user.empty() ? "hotlane" : tool.engine.user;
    out.database = tool.engine.database.empty() ? tool.name : tool.engine.database;
    return out;
}

read_counters reader(std::shared_ptr<metrics::source> from,
                     std::function<policy::time_point()> now,
                     policy::duration budget) {
    return [from = std::move(from),
            now = std::move(now),
            budget]() -> tl::expected<policy::sample, std::string> {
        auto got = from->read(now, budget);
        if (got) return std::move(*got);
        return tl::unexpected(
            fmt::format("{}: {}", metrics::to_string(got.error().what), got.error().detail));
    };
}

}  // namespace

open_counters real_sources(std::function<policy::time_point()> now, policy::duration budget) {
    return [now = std::move(now), budget](const config::tool& tool,
                                          const config::model& model,
                                          policy::home_kind home) -> read_counters {
        if (home == policy::home_kind::engine) {
            if (tool.engine.kind != config::engine_kind::twill)
                return never("no counter source for this engine kind");
            return reader(metrics::make_twill_source(engine_target(tool)), now, budget);
        }
        const auto server =
            tool.postgres ? model.postgres.find(tool.postgres->server) : model.postgres.end();
        if (server == model.postgres.end()) return never("no PostgreSQL server is configured");
        const auto password = config::read_secret(server->second.admin_password);
        if (!password) return never(password.error());
        metrics::source_target target;
        target.host = server->second.at.host;
        target.port = server->second.at.port;
        target.user = server->second.admin_user;
        target.database = tool.postgres->database.empty() ? tool.name : tool.postgres->database;
        target.password = *password;
        return reader(metrics::make_postgres_lock_source(target), now, budget);
    };
}

}  // namespace hotlane::control
