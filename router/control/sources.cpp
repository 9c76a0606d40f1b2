#include "router/control/sources.hpp"

#include <map>
#include <mutex>

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

metrics::source_target query_target(const config::tool& tool, std::string password) {
    metrics::source_target out;
    out.host = tool.engine.at.host;
    out.port = tool.engine.at.port;
    out.user = !tool.engine.query_user.empty() ? tool.engine.query_user
               : !tool.engine.user.empty()     ? tool.engine.user
                                               : "hotlane";
    out.database = tool.engine.database.empty() ? tool.name : tool.engine.database;
    out.password = std::move(password);
    return out;
}

// One reading serves all tools of one server and query, each with its own row. THREADS: any.
class query_pool {
  public:
    std::shared_ptr<metrics::shared_query> get(const config::tool& tool,
                                               const metrics::source_target& target,
                                               policy::duration shared_for) {
        const auto key = fmt::format("{}:{} {} {} {}",
                                     target.host,
                                     target.port,
                                     target.user,
                                     target.database,
                                     tool.engine.query);
        const std::lock_guard lock(mutex_);
        auto& slot = known_[key];
        auto alive = slot.lock();
        if (!alive) {
            alive = std::make_shared<metrics::shared_query>(target, tool.engine.query, shared_for);
            slot = alive;
        }
        return alive;
    }

  private:
    std::mutex mutex_;
    std::map<std::string, std::weak_ptr<metrics::shared_query>> known_;
};

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

read_counters sql_reader(query_pool& queries,
                         const config::tool& tool,
                         const config::model& model,
                         const std::function<policy::time_point()>& now,
                         policy::duration budget) {
    if (tool.engine.query.empty()) return never("engine.query is not configured");
    const auto password = config::read_secret(tool.engine.query_password);
    if (!password) return never(password.error());
    // Shorter than half a window, so that no two readings of one tool are the same one.
    const auto shared_for = config::settings_of(model, tool).window.length / 4;
    auto shared = queries.get(tool, query_target(tool, *password), shared_for);
    return reader(metrics::make_sql_source(std::move(shared), tool.name), now, budget);
}

tl::expected<metrics::source_target, std::string> postgres_target(const config::tool& tool,
                                                                  const config::model& model) {
    const auto server =
        tool.postgres ? model.postgres.find(tool.postgres->server) : model.postgres.end();
    if (server == model.postgres.end())
        return tl::unexpected(std::string("no PostgreSQL server is configured"));
    const auto password = config::read_secret(server->second.admin_password);
    if (!password) return tl::unexpected(password.error());
    metrics::source_target target;
    target.host = server->second.at.host;
    target.port = server->second.at.port;
    target.user = server->second.admin_user;
    target.database = tool.postgres->database.empty() ? tool.name : tool.postgres->database;
    target.password = *password;
    return target;
}

}  // namespace

std::optional<policy::postgres_model> measure_target(const config::tool& tool,
                                                     const config::model& model,
                                                     policy::duration budget) {
    const auto target = postgres_target(tool, model);
    if (!target) return std::nullopt;
    const auto got = metrics::measure_postgres(*target, budget);
    return got ? std::optional{*got} : std::nullopt;
}

open_counters real_sources(std::function<policy::time_point()> now, policy::duration budget) {
    auto queries = std::make_shared<query_pool>();
    return [now = std::move(now), budget, queries = std::move(queries)](
               const config::tool& tool,
               const config::model& model,
               policy::home_kind home) -> read_counters {
        if (home == policy::home_kind::engine) {
            if (tool.engine.kind == config::engine_kind::sql)
                return sql_reader(*queries, tool, model, now, budget);
            if (tool.engine.metrics) {
                metrics::source_target page;
                page.host = tool.engine.metrics->host;
                page.port = tool.engine.metrics->port;
                return reader(metrics::make_twill_http_source(page), now, budget);
            }
            return reader(metrics::make_twill_source(engine_target(tool)), now, budget);
        }
        const auto target = postgres_target(tool, model);
        if (!target) return never(target.error());
        return reader(metrics::make_postgres_lock_source(*target), now, budget);
    };
}

}  // namespace hotlane::control
