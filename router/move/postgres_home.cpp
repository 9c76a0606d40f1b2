#include "router/move/postgres_home.hpp"

#include <fmt/format.h>

#include "router/move/fence_sql.hpp"
#include "router/move/names.hpp"
#include "router/move/schema.hpp"
#include "router/sql/facts.hpp"

namespace hotlane::move {
namespace {

std::string ident(std::string_view name) {
    return sql::quote_identifier(name);
}
std::string literal(std::string_view text) {
    return sql::quote_literal(text);
}

// One transaction: marker first, then `statements`, then COMMIT. Any refusal rolls back.
answer<bool> transact(pg_job job,
                      const std::string& tool,
                      const marker& expected,
                      const marker& next,
                      const std::vector<std::string>& statements) {
    if (auto begun = begin(job.link, job.lock_timeout); !begun)
        return tl::unexpected(begun.error());
    auto changed = change_marker(job.link, tool, expected, next);
    if (!changed || !*changed) {
        rollback(job.link);
        return changed;
    }
    for (const auto& statement : statements) {
        if (auto sent = send(job.link, statement); !sent) {
            rollback(job.link);
            return tl::unexpected(sent.error());
        }
    }
    if (auto committed = commit(job.link); !committed) return tl::unexpected(committed.error());
    return true;
}

std::vector<std::string> create_statements(const plan& p) {
    const std::string schema = staging_schema(p.move);
    std::vector<std::string> out;
    // CREATE for the role only matters where the admin is no superuser and gives the tables away.
    out.push_back(fmt::format("CREATE SCHEMA {}; GRANT CREATE ON SCHEMA {} TO {}",
                              ident(schema),
                              ident(schema),
                              ident(p.role)));
    for (const auto& t : p.tables)
        out.push_back(fmt::format("{}; ALTER TABLE {}.{} OWNER TO {}",
                                  postgres_create_table(t, schema),
                                  ident(schema),
                                  ident(t.name),
                                  ident(p.role)));
    return out;
}

marker staging_of(const plan& p) {
    return {marker_state::staging, p.move, p.epoch, p.names(), p.schema, p.leader};
}
marker fenced_of(const plan& p) {
    return {marker_state::fenced, p.move, p.epoch, p.names(), p.schema, p.leader};
}

}  // namespace

answer<bool> stage_tables(pg_job job, const plan& p, const marker& expected) {
    return transact(job, p.tool, expected, staging_of(p), create_statements(p));
}

std::optional<definition_error> try_tables(pg_job job, const plan& p) {
    const auto statements = create_statements(p);
    if (auto begun = begin(job.link, job.lock_timeout); !begun)
        return definition_error{"", begun.error()};
    for (std::size_t i = 0; i < statements.size(); ++i) {
        if (auto sent = send(job.link, statements[i]); !sent) {
            rollback(job.link);
            return definition_error{i == 0 ? std::string() : p.tables[i - 1].name, sent.error()};
        }
    }
    rollback(job.link);
    return std::nullopt;
}

std::string leave_alone(const table& t, const std::string& schema) {
    return fmt::format(
        "ALTER TABLE {}.{} SET (autovacuum_enabled = false, toast.autovacuum_enabled = false)",
        ident(schema),
        ident(t.name));
}

std::string empty_staged(const table& t, const std::string& schema) {
    return fmt::format("TRUNCATE {}.{}", ident(schema), ident(t.name));
}

// Everything of the flip but the marker.
static std::vector<std::string> flip_statements(const plan& p) {
    const std::string staged = staging_schema(p.move);
    std::vector<std::string> statements{drop_fence_views_sql(p.schema)};
    for (const auto& t : p.tables)
        statements.push_back(fmt::format(
            "ALTER TABLE {}.{} SET SCHEMA {}", ident(staged), ident(t.name), ident(p.schema)));
    if (p.ahead)
        for (const auto& t : p.tables)
            statements.push_back(
                fmt::format("ALTER TABLE {}.{} RESET (autovacuum_enabled, "
                            "toast.autovacuum_enabled)",
                            ident(p.schema),
                            ident(t.name)));
    statements.push_back(fmt::format("DROP SCHEMA {}", ident(staged)));
    // CREATE as well: CREATE TABLE IF NOT EXISTS asks for it even when the table is there.
    statements.push_back(
        fmt::format("GRANT USAGE, CREATE ON SCHEMA {} TO {}", ident(p.schema), ident(p.role)));
    return statements;
}

answer<bool> flip_out(pg_job job, const plan& p) {
    marker next = staging_of(p);
    next.state = marker_state::serving;
    next.epoch = p.epoch + 1;
    return transact(job, p.tool, staging_of(p), next, flip_statements(p));
}

// As a session of the role would begin: its own search_path, or the one that hotlane gives it.
static answer<bool> take_role(pg_job job, const plan& p) {
    const std::string path =
        p.schema != "public"
            ? literal(ident(p.schema))
            : fmt::format(
                  "coalesce((SELECT substr(c, 13) FROM pg_db_role_setting s LEFT JOIN "
                  "pg_roles r ON r.oid = s.setrole LEFT JOIN pg_database d ON d.oid = "
                  "s.setdatabase, unnest(s.setconfig) c WHERE c LIKE 'search\\_path=%' AND "
                  "(s.setrole = 0 OR r.rolname = {}) AND (s.setdatabase = 0 OR d.datname = "
                  "current_database()) ORDER BY s.setrole = 0, s.setdatabase = 0 LIMIT 1), "
                  "(SELECT CASE WHEN source IN ('default', 'configuration file', 'command "
                  "line') THEN setting ELSE boot_val END FROM pg_settings WHERE name = "
                  "'search_path'))",
                  literal(p.role));
    for (const auto& statement : {fmt::format("SELECT set_config('search_path', {}, true)", path),
                                  fmt::format("SET LOCAL ROLE {}", ident(p.role))})
        if (auto sent = send(job.link, statement); !sent) {
            rollback(job.link);
            return tl::unexpected(sent.error());
        }
    return true;
}

answer<bool> begin_as_flipped(pg_job job, const plan& p) {
    if (auto begun = begin(job.link, job.lock_timeout); !begun)
        return tl::unexpected(begun.error());
    auto mark = read_marker(job.link, p.tool, true);
    if (!mark || !*mark || (*mark)->state != marker_state::staging || (*mark)->move != p.move) {
        rollback(job.link);
        if (!mark) return tl::unexpected(mark.error());
        return false;
    }
    for (const auto& statement : flip_statements(p))
        if (auto sent = send(job.link, statement); !sent) {
            rollback(job.link);
            return tl::unexpected(sent.error());
        }
    return take_role(job, p);
}

answer<bool> begin_as_made(pg_job job, const plan& p) {
    if (auto begun = begin(job.link, job.lock_timeout); !begun)
        return tl::unexpected(begun.error());
    auto statements = create_statements(p);
    for (auto& statement : flip_statements(p))
        statements.push_back(std::move(statement));
    for (const auto& statement : statements)
        if (auto sent = send(job.link, statement); !sent) {
            rollback(job.link);
            return tl::unexpected(sent.error());
        }
    return take_role(job, p);
}

answer<bool> begin_trial(pg_job job, const plan& p) {
    if (auto begun = begin(job.link, job.lock_timeout); !begun)
        return tl::unexpected(begun.error());
    for (const auto& statement : create_statements(p))
        if (auto sent = send(job.link, statement); !sent) {
            rollback(job.link);
            return tl::unexpected(sent.error());
        }
    return true;
}

answer<bool> begin_as_role(pg_job job, const plan& p) {
    if (auto begun = begin(job.link, job.lock_timeout); !begun)
        return tl::unexpected(begun.error());
    return take_role(job, p);
}

answer<bool> undo_stage(pg_job job, const std::string& tool, const marker& staging) {
    marker next = staging;
    next.state = marker_state::away;
    return transact(
        job,
        tool,
        staging,
        next,
        {fmt::format("DROP SCHEMA IF EXISTS {} CASCADE", ident(staging_schema(staging.move)))});
}

answer<bool> fence_tables(pg_job job,
                          const plan& p,
                          const marker& expected,
                          const std::string& shape) {
    if (auto begun = begin(job.link, job.lock_timeout); !begun)
        return tl::unexpected(begun.error());
    const auto abort = [&](const link_error& error) -> answer<bool> {
        rollback(job.link);
        return tl::unexpected(error);
    };
    auto changed = change_marker(job.link, p.tool, expected, fenced_of(p));
    if (!changed) return abort(changed.error());
    if (!*changed) {
        rollback(job.link);
        return false;
    }
    std::string list;
    for (const auto& t : p.tables)
        list += (list.empty() ? "" : ", ") + ident(p.schema) + "." + ident(t.name);
    if (!list.empty())
        if (auto locked = send(job.link, "LOCK TABLE " + list + " IN ACCESS EXCLUSIVE MODE");
            !locked)
            return abort(locked.error());
    auto now = postgres_shape(job.link, p.schema);
    if (!now) return abort(now.error());
    if (*now != shape) return abort({"", "the tables changed since preflight", fate::refused});
    const std::string fenced = fenced_schema(p.move);
    for (const auto& statement : {fence_functions_sql(),
                                  fmt::format("CREATE SCHEMA {}", ident(fenced)),
                                  fence_sql(p.schema, fenced, p.tool, p.move)})
        if (auto sent = send(job.link, statement); !sent) return abort(sent.error());
    if (auto committed = commit(job.link); !committed) return tl::unexpected(committed.error());
    return true;
}

std::string name_blockers(home_link& link, const std::string& schema) {
    auto reply = link.exec(
        "SELECT DISTINCT a.pid, a.usename, a.application_name, a.state, "
        "date_trunc('second', now() - a.xact_start) FROM pg_locks l JOIN pg_class c ON c.oid = "
        "l.relation JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_stat_activity a ON a.pid "
        "= l.pid WHERE n.nspname = $1 AND l.granted AND l.pid <> pg_backend_pid() LIMIT 10",
        {{param_type::text, schema}});
    std::string out;
    if (!reply) return out;
    for (const auto& r : reply->data)
        out += fmt::format("{}pid {} ({}, {}, {}, for {})",
                           out.empty() ? "" : ", ",
                           r.at(0).value_or("?"),
                           r.at(1).value_or("?"),
                           r.at(2).value_or(""),
                           r.at(3).value_or("?"),
                           r.at(4).value_or("?"));
    return out;
}

answer<bool> unfence_tables(pg_job job, const std::string& tool, const marker& fenced) {
    marker next = fenced;
    next.state = marker_state::serving;
    const std::string schema = fenced.schema.empty() ? std::string("public") : fenced.schema;
    return transact(job, tool, fenced, next, {unfence_sql(schema, fenced_schema(fenced.move))});
}

answer<bool> flip_back(pg_job job, const plan& p) {
    marker next = fenced_of(p);
    next.state = marker_state::away;
    next.epoch = p.epoch + 1;
    return transact(job, p.tool, fenced_of(p), next, {});
}

// As transact(), also where there is no marker at all: it is made in the same transaction.
static answer<bool> transact_over(pg_job job,
                                  const std::string& tool,
                                  const std::optional<marker>& expected,
                                  const marker& next,
                                  const std::vector<std::string>& statements) {
    if (expected) return transact(job, tool, *expected, next, statements);
    if (auto begun = begin(job.link, job.lock_timeout); !begun)
        return tl::unexpected(begun.error());
    // An epoch below all others: if another one makes a marker meanwhile, it is not changed.
    marker fresh;
    fresh.leader = next.leader;
    auto made = ensure_marker(job.link, tool, fresh.epoch);
    if (made && next.leader > 0)
        made = send(job.link,
                    "ALTER TABLE hotlane.hotlane_home ADD COLUMN IF NOT EXISTS leader bigint NOT "
                    "NULL DEFAULT 0");
    if (!made) {
        rollback(job.link);
        return tl::unexpected(made.error());
    }
    std::uint64_t seen = 0;
    answer<bool> changed = true;
    if (next.leader > 0) changed = claim_marker(job.link, tool, next.leader, seen);
    if (changed && *changed) changed = change_marker(job.link, tool, fresh, next);
    for (std::size_t i = 0; changed && *changed && i < statements.size(); ++i)
        if (auto sent = send(job.link, statements[i]); !sent)
            changed = tl::unexpected(sent.error());
    if (!changed || !*changed) {
        rollback(job.link);
        return changed;
    }
    if (auto committed = commit(job.link); !committed) return tl::unexpected(committed.error());
    return true;
}

answer<bool> adopt_engine(pg_job job,
                          const std::string& tool,
                          const std::optional<marker>& expected,
                          const marker& next,
                          const std::string& id,
                          const std::vector<std::string>& tables) {
    std::vector<std::string> statements;
    if (expected && expected->state == marker_state::staging)
        statements.push_back(
            fmt::format("DROP SCHEMA IF EXISTS {} CASCADE", ident(staging_schema(expected->move))));
    if (!tables.empty()) {
        std::string list;
        for (const auto& t : tables)
            list += (list.empty() ? "" : ", ") + ident(next.schema) + "." + ident(t);
        statements.push_back("LOCK TABLE " + list + " IN ACCESS EXCLUSIVE MODE");
        statements.push_back(fence_functions_sql());
        statements.push_back(fmt::format("CREATE SCHEMA {}", ident(fenced_schema(id))));
        statements.push_back(fence_sql(next.schema, fenced_schema(id), tool, id));
    }
    return transact_over(job, tool, expected, next, statements);
}

answer<bool> adopt_postgres(pg_job job,
                            const std::string& tool,
                            const std::optional<marker>& expected,
                            const marker& next) {
    std::vector<std::string> statements;
    if (expected && expected->state == marker_state::fenced)
        statements.push_back(unfence_sql(next.schema, fenced_schema(expected->move)));
    return transact_over(job, tool, expected, next, statements);
}

answer<std::string> postgres_shape(home_link& link, const std::string& schema) {
    auto reply = link.exec(shape_sql(schema));
    if (!reply) return tl::unexpected(reply.error());
    if (reply->data.empty() || !reply->data[0].at(0))
        return tl::unexpected(link_error{"", "the shape of the tables is unknown", fate::refused});
    return *reply->data[0][0];
}

std::string postgres_select(const table& t, const std::string& schema) {
    std::string list;
    for (const auto& c : t.columns) {
        if (!list.empty()) list += ", ";
        list += select_of(c.as, ident(c.name));
        if (c.type == value_type::real) list += "::float8";  // float4 prints other digits
    }
    return fmt::format("SELECT {} FROM {}.{}", list, ident(schema), ident(t.name));
}

std::string postgres_copy(const table& t, const std::string& schema) {
    std::string list;
    for (const auto& c : t.columns)
        list += (list.empty() ? "" : ", ") + ident(c.name);
    return fmt::format("COPY {}.{} ({}) FROM STDIN", ident(schema), ident(t.name), list);
}

}  // namespace hotlane::move
