// The transactions of a move at the PostgreSQL home. Each locks the marker's row first and checks
// it. true: committed. false: the marker says something else, nothing was done. An error with
// fate::unknown: the marker must be read (waiting) to learn what happened.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "router/move/link.hpp"
#include "router/move/marker.hpp"
#include "router/move/plan.hpp"

namespace hotlane::move {

struct pg_job {
    home_link& link;
    std::chrono::milliseconds lock_timeout{1'000};
};

// away -> staging(m): the staging schema with all tables, owned by the tool's role.
answer<bool> stage_tables(pg_job job, const plan& p, const marker& expected);
// The same, rolled back: proves that PostgreSQL takes every definition. `index` of the error.
struct definition_error {
    std::string table;
    link_error error;
};
std::optional<definition_error> try_tables(pg_job job, const plan& p);

// staging(m) -> serving(e + 1): staged tables get their real names, our fence views go.
answer<bool> flip_out(pg_job job, const plan& p);
// staging(m) -> away(e), the staging schema is dropped.
answer<bool> undo_stage(pg_job job, const std::string& tool, const marker& staging);

// A staged table of a copy that runs ahead: nothing of the server's own takes a lock on it until
// the flip, which must not wait; and emptied, to be filled anew.
std::string leave_alone(const table& t, const std::string& schema);
std::string empty_staged(const table& t, const std::string& schema);

// An open transaction with the staged tables in it, to be rolled back.
answer<bool> begin_trial(pg_job job, const plan& p);

// Open transactions, to be rolled back: statements of the tool's role are understood there as after
// the flip of a move out (staged tables under their real names), or as they are now.
answer<bool> begin_as_flipped(pg_job job, const plan& p);
answer<bool> begin_as_role(pg_job job, const plan& p);
// For a dry run of a move out: the tables are made in this transaction too.
answer<bool> begin_as_made(pg_job job, const plan& p);

// serving(e) -> fenced(m), under ACCESS EXCLUSIVE on every table. `shape` (postgres_shape) must be
// what it was in preflight. A lock that is not had in time: refused, sqlstate 55P03.
answer<bool> fence_tables(pg_job job,
                          const plan& p,
                          const marker& expected,
                          const std::string& shape);
// Sessions that hold locks on the tool's tables, in words; empty: none.
std::string name_blockers(home_link& link, const std::string& schema);
// fenced(m) -> serving(e): everything gets its place back.
answer<bool> unfence_tables(pg_job job, const std::string& tool, const marker& fenced);
// fenced(m) -> away(e + 1).
answer<bool> flip_back(pg_job job, const plan& p);

// An operator's word (adopt.hpp); `expected`: the marker as it was read, nullopt: there is none.
// -> away, with `tables` fenced under the name of `id` where there are any.
answer<bool> adopt_engine(pg_job job,
                          const std::string& tool,
                          const std::optional<marker>& expected,
                          const marker& next,
                          const std::string& id,
                          const std::vector<std::string>& tables);
// -> serving; what a move back fenced gets its place back.
answer<bool> adopt_postgres(pg_job job,
                            const std::string& tool,
                            const std::optional<marker>& expected,
                            const marker& next);

// Everything about the tables of a schema that a move relies on, as one text.
answer<std::string> postgres_shape(home_link& link, const std::string& schema);

// SELECT of the table's columns, as both homes print them.
std::string postgres_select(const table& t, const std::string& schema);
std::string postgres_copy(const table& t, const std::string& schema);

}  // namespace hotlane::move
