#include "router/move/move.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <random>

#include "config/load.hpp"
#include "router/move/adopt.hpp"
#include "router/move/eject.hpp"
#include "router/move/job.hpp"
#include "router/move/names.hpp"
#include "router/move/pq_link.hpp"
#include "router/move/step.hpp"
#include "router/move/verify.hpp"

namespace hotlane::move {
namespace {

using policy::home_kind;

class pq_connector final : public connector {
  public:
    pq_connector(const config::model& model, const config::tool& settings, stepper& steps)
        : model_(model), settings_(settings), steps_(steps) {}

    answer<std::unique_ptr<home_link>> open(home_kind home,
                                            std::chrono::milliseconds limit) override {
        if (home == home_kind::postgres && settings_.postgres) {
            const auto server = model_.postgres.find(settings_.postgres->server);
            if (server != model_.postgres.end())
                if (auto secret = config::read_secret(server->second.admin_password); !secret)
                    return tl::unexpected(link_error{"", secret.error(), fate::refused});
        }
        return open_pq_link(admin_home(model_, settings_, home), limit, steps_);
    }

    answer<void> log_in(const std::string& role, std::chrono::milliseconds limit) override {
        auto home = placement::home_of(settings_, model_, home_kind::postgres);
        if (!home) return tl::unexpected(link_error{"", home.error(), fate::refused});
        home->user = role;
        auto link = open_pq_link(*home, limit, steps_);
        if (!link) return tl::unexpected(link.error());
        return {};
    }

  private:
    const config::model& model_;
    const config::tool& settings_;
    stepper& steps_;
};

std::uint64_t random_bits() {
    static thread_local std::random_device device;
    return (std::uint64_t{device()} << 32U) | device();
}

report refused(const request& what, findings found) {
    report out;
    out.id = found.made.move;
    out.refusals = std::move(found.refusals);
    out.detail = std::move(found.detail);
    out.detail["tool"] = what.tool;
    if (!found.made.notes.empty()) out.detail["notes"] = found.made.notes;
    auto tables = nlohmann::json::array();
    for (const auto& t : found.made.tables)
        tables.push_back({{"name", t.name}, {"rows", t.rows}});
    out.detail["tables"] = std::move(tables);
    return out;
}

// A move that preflight refused is in the journal too, for `hotlane moves`.
void note_refused(surroundings& around, const request& what, const findings& found) {
    placement::move_record record;
    record.id = found.made.move;
    record.tool = what.tool;
    record.from = found.made.from;
    record.to = what.to;
    record.epoch = found.made.epoch;
    record.phase = std::string(to_string(phase::preflight));
    record.outcome = "refused";
    for (const auto& r : found.refusals)
        record.reason += (record.reason.empty() ? "" : "; ") + r.code + ": " + r.message;
    record.ordered_by = what.ordered_by;
    record.started = record.ended = around.now();
    static_cast<void>(around.store.put_move(record));
    if (around.progress) around.progress(record);
}

report run_move(const request& what, surroundings& around, placement::tool_entry& tool) {
    pq_connector homes(around.model, tool.settings, process_steps());
    context with{around, tool, homes, process_steps(), {}};
    const auto now = around.now();
    const std::string id = make_move_id(now, random_bits());
    const auto look = [&] {
        return what.to == home_kind::postgres ? look_out(with, what, id)
                                              : look_back(with, what, id);
    };
    findings found = look();
    const bool leftover = !found.refusals.empty() && found.refusals[0].code == "another_move";
    if (what.execute && leftover && recover_tool(with)) found = look();
    if (!found.refusals.empty()) {
        if (what.execute) note_refused(around, what, found);
        return refused(what, std::move(found));
    }
    if (!what.execute) {
        active_move trial{with, {}, std::move(found), steady::now(), {}, {}, false, {}, {}};
        trial.record.ordered_by = what.ordered_by;
        rehearse_trial(trial);
        return refused(what, std::move(trial.found));
    }
    return execute(with, what, std::move(found), now);
}

}  // namespace

report run(const request& what, surroundings& around) {
    report out;
    const auto tool = around.tools.find(what.tool);
    if (!tool) {
        out.refusals.push_back({"no_tool",
                                fmt::format("there is no tool \"{}\"", what.tool),
                                "`hotlane tools` lists them"});
        return out;
    }
    try {
        return run_move(what, around, *tool);
    } catch (const std::exception& e) {
        // Out of memory, a broken library: wherever it was, recovery finds out what holds.
        out.refusals.push_back({"internal_error", e.what(), "see the log; recovery is under way"});
    }
    recover(*tool, around);
    if (!around.others && tool->gate.held()) tool->gate.release();
    return out;
}

bool recover(placement::tool_entry& tool, surroundings& around) {
    try {
        pq_connector homes(around.model, tool.settings, process_steps());
        context with{around, tool, homes, process_steps(), {}};
        return recover_tool(with);
    } catch (const std::exception& e) {
        auto next = std::make_shared<placement::route>();
        next->served = false;
        next->reason = e.what();
        if (const auto old = tool.current()) next->generation = old->generation + 1;
        tool.swap(std::move(next));
        return false;
    }
}

sight see(placement::tool_entry& tool, surroundings& around) {
    sight out;
    if (!tool.settings.postgres) {
        // Nothing to read: such a tool never moves.
        const auto route = tool.current();
        return {
            true, policy::home_kind::engine, std::max<std::uint64_t>(1, route->epoch), true, {}};
    }
    try {
        pq_connector homes(around.model, tool.settings, process_steps());
        context with{around, tool, homes, process_steps(), {}};
        const auto s = look(with);
        return {s.known, s.where, s.epoch, s.confirmed, s.reason};
    } catch (const std::exception& e) {
        out.reason = e.what();
        return out;
    }
}

namespace {

checked look_at(placement::tool_entry& tool, surroundings& around, checked (*look)(context&)) {
    try {
        pq_connector homes(around.model, tool.settings, process_steps());
        context with{around, tool, homes, process_steps(), {}};
        return look(with);
    } catch (const std::exception& e) {
        return {false, {{"tool", tool.name}, {"problems", {e.what()}}}};
    }
}

}  // namespace

adopted adopt(const adoption& what, surroundings& around) {
    adopted out;
    const auto tool = around.tools.find(what.tool);
    if (!tool || !tool->settings.postgres) {
        out.refusals.push_back({"no_tool",
                                fmt::format("there is no tool \"{}\" with two homes", what.tool),
                                "`hotlane tools` lists them"});
        return out;
    }
    try {
        pq_connector homes(around.model, tool->settings, process_steps());
        context with{around, *tool, homes, process_steps(), {}};
        return adopt_with(with, what, make_move_id(around.now(), random_bits()));
    } catch (const std::exception& e) {
        out.refusals.push_back({"internal_error", e.what(), "see the log"});
        return out;
    }
}

checked verify(placement::tool_entry& tool, surroundings& around) {
    return look_at(tool, around, &verify_with);
}

checked eject(placement::tool_entry& tool, surroundings& around) {
    return look_at(tool, around, &eject_with);
}

cleaned clean(const placement::move_record& finished, surroundings& around) {
    const auto tool = around.tools.find(finished.tool);
    if (!tool || !tool->settings.postgres) return {};
    try {
        pq_connector homes(around.model, tool->settings, process_steps());
        context with{around, *tool, homes, process_steps(), {}};
        return clean_with(with, finished);
    } catch (const std::exception&) {
        return {};  // not dropped; the caller tries again later
    }
}

}  // namespace hotlane::move
