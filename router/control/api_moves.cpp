// The admin API's routes about moves: what runs and ran, orders, and what can be asked of a tool's
// homes.
#include <fmt/format.h>

#include "router/control/api_parts.hpp"
#include "router/control/json.hpp"
#include "router/control/views.hpp"

namespace hotlane::control {

using admin::api_answer;
using admin::api_request;
using nlohmann::json;

namespace {

constexpr std::chrono::milliseconds order_patience{500};  // a worker waits no longer for a change

// The decision that the move carries out: which rule of which policy, or that a person said so.
json decision_of(controller& at, const placement::move_record& record) {
    const auto detail =
        record.plan.is_object() ? record.plan.value("detail", json::object()) : json::object();
    const auto id = text_of(detail, "decision");
    if (id.empty()) return nullptr;
    const auto kept = at.shared().store.decisions(record.tool, listed_max);
    if (!kept) return nullptr;
    for (const auto& each : *kept) {
        if (std::to_string(each.id) != id) continue;
        json out{{"id", each.id}};
        for (const char* key : {"event", "rule", "policy", "where", "reason"})
            out[key] = each.body.value(key, "");
        return out;
    }
    return {{"id", id}};
}

// How an order ended: done, undone (the tool serves at its old home), unfinished (a home does not
// answer; recovery ends it), refused (nothing touched).
json outcome_of(controller& at, const order& given) {
    if (!given.report) return nullptr;
    if (given.report->moved) return "done";
    const auto journal = at.shared().store.move(given.report->id);
    if (!journal || !journal->has_value()) return "refused";
    return (*journal)->outcome.empty() ? "unfinished" : (*journal)->outcome;
}

std::string command_of(const std::string& tool, policy::home_kind to) {
    return fmt::format("hotlane route {} --to {} --execute", tool, policy::to_string(to));
}

// Without `execute`: what would happen, and which guards would refuse. Nothing is changed.
api_answer dry_run(controller& at, const desk& tool, const move::request& what) {
    if (at.moves().busy(what.tool))
        return fail(409, fmt::format("a move of {} is under way", what.tool), "hotlane moves");
    const auto report = at.rehearse(what);
    auto body = to_json(report);
    const auto rail = tool.why_not(what.to);
    if (!rail.empty())
        body["refusals"].push_back({{"code", "rail"}, {"message", rail}, {"mend", ""}});
    body["tool"] = what.tool;
    body["to"] = policy::to_string(what.to);
    body["would_move"] = body["refusals"].empty();
    if (body["refusals"].empty()) body["next_steps"] = {command_of(what.tool, what.to)};
    return good(std::move(body));
}

api_answer reverse(controller& at, const placement::move_record& record, const std::string& by) {
    const auto tool = at.find(record.tool);
    if (!tool) return unknown_tool(at, record.tool);
    const auto route = tool->entry().current();
    if (record.outcome != "done" || !route->served || route->at.kind != record.to ||
        route->epoch != record.epoch + 1)
        return fail(409,
                    fmt::format("{} is not where move {} brought it", record.tool, record.id),
                    "hotlane where " + record.tool);
    const auto given = tool->order(record.from, by);
    if (!given) return fail(409, given.error(), "hotlane explain " + record.tool);
    return good({{"order", *given},
                 {"move", record.id},
                 {"tool", record.tool},
                 {"to", policy::to_string(record.from)}},
                202);
}

// A look at the homes of one tool while no move works on them.
api_answer look(
    controller& at,
    const std::string& name,
    const std::function<move::checked(placement::tool_entry&, move::surroundings&)>& how) {
    const auto tool = at.find(name);
    if (!tool) return unknown_tool(at, name);
    if (at.moves().busy(name))
        return fail(409, fmt::format("a move of {} is under way", name), "hotlane moves --watch");
    if (!how) return fail(500, "this hotlane cannot look at homes");
    return good(at.look_at(name, how).detail);
}

}  // namespace

api_answer get_moves(controller& at, const api_request& request) {
    // ?wait: answers once something changed, or after a moment (hotlane moves --watch).
    if (request.query.count("wait") > 0) at.moves().await_change(order_patience);
    const auto kept = at.shared().store.recent_moves(limit_of(request));
    if (!kept) return fail(500, kept.error().what);
    return good(moves_json(at, *kept));
}

api_answer get_move(controller& at, const api_request& request) {
    const auto kept = at.shared().store.move(request.path[1]);
    if (!kept) return fail(500, kept.error().what);
    if (!kept->has_value()) return fail(404, fmt::format("no move has the id {}", request.path[1]));
    auto body = to_json(**kept);
    body["plan"] = (*kept)->plan;
    for (const auto& each : at.moves().all_active())
        if (each.move_id == (*kept)->id) body["order"] = to_json(each);
    body["decision"] = decision_of(at, **kept);
    body["reverse"] =
        (*kept)->outcome == "done" ? json("hotlane move reverse " + (*kept)->id) : json(nullptr);
    return good(std::move(body));
}

api_answer get_order(controller& at, const api_request& request) {
    const auto wanted = whole_number(request.path[1]);
    // ?phase=SEEN: answers once it is in another one, so that a command line need not poll fast.
    const auto seen = request.query.find("phase");
    const auto found = !wanted ? std::nullopt
                       : seen == request.query.end()
                           ? at.moves().find(*wanted)
                           : at.moves().await(*wanted, seen->second, order_patience);
    if (!found) return fail(404, fmt::format("no order has the number {}", request.path[1]));
    auto body = to_json(*found);
    body["outcome"] = outcome_of(at, *found);
    return good(std::move(body));
}

api_answer post_route(controller& at, const api_request& request) {
    const auto tool = at.find(request.path[1]);
    if (!tool) return unknown_tool(at, request.path[1]);
    const auto to = home_of(request.body, "to");
    if (!to) return fail(400, "`to` must be engine or postgres");
    const auto route = tool->entry().current();
    if (!route->served)
        return fail(409, route->reason, "the tool must be served before it can move");
    if (route->at.kind == *to)
        return fail(409,
                    fmt::format("{} lives on {} already", tool->name(), policy::to_string(*to)));
    const auto execute = request.body.find("execute");
    if (execute != request.body.end() && !execute->is_boolean())
        return fail(400, "`execute` must be true or false");
    if (execute == request.body.end() || !execute->get<bool>()) {
        move::request what;
        what.tool = tool->name();
        what.to = *to;
        what.ordered_by = who(request.body);
        const auto with = tool->settings();
        what.hold_max = std::min(with.rails.hold_max, tool->entry().settings.hold_max);
        return dry_run(at, *tool, what);
    }
    const auto given = tool->order(*to, who(request.body));
    if (!given) return fail(409, given.error(), "hotlane explain " + tool->name());
    return good({{"order", *given},
                 {"tool", tool->name()},
                 {"to", policy::to_string(*to)},
                 {"next_steps", {"hotlane moves", "hotlane where " + tool->name()}}},
                202);
}

// {action: abort | reverse | complete} of one move.
api_answer post_move(controller& at, const api_request& request) {
    const auto& id = request.path[1];
    const auto action = text_of(request.body, "action");
    const auto kept = at.shared().store.move(id);
    if (!kept) return fail(500, kept.error().what);
    if (!kept->has_value()) return fail(404, fmt::format("no move has the id {}", id));
    const auto look = "hotlane moves " + id;
    if (action == "reverse") return reverse(at, **kept, who(request.body));
    if (action == "abort") {
        if (!at.moves().abort(id)) return fail(409, "the move does not run", look);
        return good({{"move", id}, {"text", "the move ends at its next safe point"}}, 202);
    }
    if (action != "complete") return fail(400, "`action` must be abort, reverse or complete");
    const auto ended = at.complete(id);
    if (!ended) return fail(409, ended.error(), look);
    return good({{"move", id}, {"text", *ended}});
}

api_answer post_verify(controller& at, const api_request& request) {
    return look(at, request.path[1], at.shared().act.verify);
}

api_answer get_eject(controller& at, const api_request& request) {
    return look(at, request.path[1], at.shared().act.eject);
}

// {home, execute}: without `execute` what each home has, and what adopting one would mean.
api_answer post_adopt(controller& at, const api_request& request) {
    const auto tool = at.find(request.path[1]);
    if (!tool) return unknown_tool(at, request.path[1]);
    const auto home = home_of(request.body, "home");
    if (!home) return fail(400, "`home` must be engine or postgres");
    const auto execute = request.body.find("execute");
    if (execute != request.body.end() && !execute->is_boolean())
        return fail(400, "`execute` must be true or false");
    if (at.moves().busy(tool->name()))
        return fail(409, fmt::format("a move of {} is under way", tool->name()), "hotlane moves");
    if (!at.shared().act.adopt) return fail(500, "this hotlane cannot adopt homes");
    const bool acts = execute != request.body.end() && execute->get<bool>();
    const auto ended = at.adopt({tool->name(), *home, who(request.body), acts});
    json refusals = json::array();
    for (const auto& r : ended.refusals)
        refusals.push_back({{"code", r.code}, {"message", r.message}, {"mend", r.mend}});
    json body{{"tool", tool->name()},
              {"home", policy::to_string(*home)},
              {"executed", acts},
              {"would_adopt", ended.refusals.empty()},
              {"adopted", ended.done},
              {"refusals", std::move(refusals)},
              {"detail", ended.detail}};
    if (!acts && ended.refusals.empty())
        body["next_steps"] = json::array({fmt::format(
            "hotlane adopt {} --home {} --execute", tool->name(), policy::to_string(*home))});
    return good(std::move(body));
}

}  // namespace hotlane::control
