#include "router/move/engine_names.hpp"

#include <fmt/format.h>

#include "router/move/names.hpp"

namespace hotlane::move {
namespace {

// A table needs at most four steps, each late rename adds two, each stray two.
constexpr int steps_max = 40;

struct direction {
    part kept, spare;
    name_step (*next)(const name_view&) noexcept;
};

struct table_names {
    std::string real, kept, spare;
};

bool strays_taken(const engine_catalog& catalog, const names_job& job, std::size_t i) {
    for (std::uint32_t k = 1; k <= job.strays[i]; ++k)
        if (what_stands(catalog, stray_name(job.move, i, k)) == stands::nothing) return false;
    return true;
}

answer<void> seal_strays(home_link& engine,
                         const engine_catalog& catalog,
                         const names_job& job,
                         std::size_t i) {
    for (std::uint32_t k = 1; k <= job.strays[i]; ++k) {
        const auto name = stray_name(job.move, i, k);
        if (what_stands(catalog, name) != stands::nothing) continue;
        if (auto made = create_placeholder(engine, name); !made) return made;
    }
    return {};
}

answer<void> clear_stray(home_link& engine, names_job& job, std::size_t i, bool is_data) {
    ++job.strays[i];
    const auto name = stray_name(job.move, i, job.strays[i]);
    if (job.before_stray && !job.before_stray(job))
        return tl::unexpected(link_error{"", "the journal cannot be written", fate::unknown});
    auto moved = rename_table(engine, job.tables[i], name);
    if (is_data && moved)
        job.alarms.push_back(fmt::format(
            "a table \"{}\" was made on the engine while the tool moved; it is kept as {}",
            job.tables[i],
            name));
    return moved;
}

answer<void> take_step(home_link& engine,
                       names_job& job,
                       std::size_t i,
                       const table_names& n,
                       const engine_catalog& catalog,
                       name_step step) {
    switch (step) {
        case name_step::seal_away:
            return create_placeholder(engine, n.kept);
        case name_step::seal_spare:
            return create_placeholder(engine, n.spare);
        case name_step::seal_stray:
            return seal_strays(engine, catalog, job, i);
        case name_step::clear_ours: {
            const auto cleared = rename_table(engine, n.real, n.spare);
            return cleared ? rename_table(engine, n.kept, n.real) : cleared;
        }
        case name_step::clear_stray: {
            const bool is_data = what_stands(catalog, n.real) == stands::data;
            const auto cleared = clear_stray(engine, job, i, is_data);
            return cleared ? rename_table(engine, n.kept, n.real) : cleared;
        }
        case name_step::bring_data:
            return rename_table(engine, n.kept, n.real);
        case name_step::done:
        case name_step::lost:
            break;
    }
    return {};
}

answer<void> settle_table(home_link& engine, names_job& job, std::size_t i, const direction& way) {
    const table_names n{
        job.tables[i], engine_name(job.move, way.kept, i), engine_name(job.move, way.spare, i)};
    for (int tries = 0; tries < steps_max; ++tries) {
        auto catalog = read_engine_catalog(engine);
        if (!catalog) return tl::unexpected(catalog.error());
        const name_view view{what_stands(*catalog, n.real),
                             what_stands(*catalog, n.kept),
                             what_stands(*catalog, n.spare),
                             strays_taken(*catalog, job, i)};
        const name_step step = way.next(view);
        if (step == name_step::done) return {};
        if (step == name_step::lost)
            return tl::unexpected(link_error{
                "",
                fmt::format("table \"{}\" is neither under its name nor under {}", n.real, n.kept),
                fate::refused});
        const auto taken = take_step(engine, job, i, n, *catalog, step);
        if (!taken && taken.error().what == fate::unknown) return taken;
    }
    return tl::unexpected(link_error{
        "", fmt::format("the names of table \"{}\" do not come to rest", n.real), fate::unknown});
}

answer<void> settle(home_link& engine, names_job& job, const direction& way) {
    job.strays.resize(job.tables.size(), 0);
    for (std::size_t i = 0; i < job.tables.size(); ++i)
        if (auto settled = settle_table(engine, job, i, way); !settled) return settled;
    return {};
}

}  // namespace

namespace {

// The data stands aside. All names that a late rename could lead to are taken first, so that the
// moment in which the real name is free is one statement long.
name_step next_with_data_aside(const name_view& v) noexcept {
    if (!v.strays_taken) return name_step::seal_stray;
    if (v.real == stands::ours && v.spare == stands::nothing) return name_step::clear_ours;
    if (v.spare == stands::nothing) return name_step::seal_spare;
    return v.real == stands::nothing ? name_step::bring_data : name_step::clear_stray;
}

}  // namespace

name_step next_undo_step(const name_view& v) noexcept {
    // Nobody knows yet whether t -> f happened: taking the name decides it.
    if (v.kept == stands::nothing) return name_step::seal_away;
    if (v.kept == stands::ours)  // the data never left, or is back already
        return v.real == stands::data ? name_step::done : name_step::lost;
    return next_with_data_aside(v);
}

name_step next_open_step(const name_view& v) noexcept {
    if (v.kept != stands::data) return v.real == stands::data ? name_step::done : name_step::lost;
    return next_with_data_aside(v);
}

answer<void> undo_fence(home_link& engine, names_job& job) {
    return settle(engine, job, {part::fenced, part::spare, &next_undo_step});
}

answer<void> open_staged(home_link& engine, names_job& job) {
    return settle(engine, job, {part::staged, part::discarded, &next_open_step});
}

}  // namespace hotlane::move
