#include "router/control/api.hpp"

#include <array>
#include <charconv>

#include <fmt/format.h>

#include "router/control/controller.hpp"
#include "router/control/json.hpp"
#include "router/control/views.hpp"

namespace hotlane::control {

using admin::api_answer;
using admin::api_request;
using nlohmann::json;

namespace {

constexpr std::uint64_t listed_default = 50;
constexpr std::uint64_t listed_max = 1'000;
constexpr std::size_t who_max = 64;
constexpr std::size_t reason_max = 500;
constexpr std::chrono::milliseconds order_patience{500};  // a worker waits no longer for a change

api_answer fail(int status, std::string error, std::string hint = "") {
    return {status, {{"error", std::move(error)}, {"hint", std::move(hint)}}};
}

api_answer good(json body, int status = 200) {
    body["schema"] = schema;
    return {status, std::move(body)};
}

std::optional<std::uint64_t> number(const std::string& text) {
    std::uint64_t out{};
    const auto* end = text.data() + text.size();
    const auto [at, ec] = std::from_chars(text.data(), end, out);
    if (ec != std::errc{} || at != end) return std::nullopt;
    return out;
}

std::uint64_t limit_of(const api_request& request) {
    const auto found = request.query.find("limit");
    if (found == request.query.end()) return listed_default;
    return std::min(number(found->second).value_or(listed_default), listed_max);
}

std::string text_of(const json& body, const char* key) {
    const auto found = body.find(key);
    return found != body.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

std::string who(const json& body) {
    const auto by = text_of(body, "by");
    return by.empty() ? "operator" : by.substr(0, who_max);
}

std::optional<policy::home_kind> home_of(const json& body, const char* key) {
    const auto text = text_of(body, key);
    if (text == "engine") return policy::home_kind::engine;
    if (text == "postgres") return policy::home_kind::postgres;
    return std::nullopt;
}

api_answer unknown_tool(controller& at, const std::string& name) {
    std::string known;
    int shown = 0;
    for (const auto& each : at.desks()) {
        if (++shown > 10) break;
        known += (known.empty() ? "" : ", ") + each->name();
    }
    return fail(404,
                fmt::format("no tool is called {}", name),
                known.empty() ? "no tool is known yet" : "known: " + known);
}

// ---- reads

api_answer get_status(controller& at, const api_request&) {
    return good(status_json(at));
}

api_answer get_tools(controller& at, const api_request&) {
    json tools = json::array();
    for (const auto& each : at.desks())
        tools.push_back(tool_json(at, each->view()));
    return good({{"tools", std::move(tools)}});
}

api_answer get_tool(controller& at, const api_request& request) {
    const auto tool = at.find(request.path[1]);
    if (!tool) return unknown_tool(at, request.path[1]);
    return good(tool_detail_json(at, tool->view()));
}

api_answer get_explain(controller& at, const api_request& request) {
    const auto tool = at.find(request.path[1]);
    if (!tool) return unknown_tool(at, request.path[1]);
    return good(explain_json(at, tool->view()));
}

api_answer get_decisions(controller& at, const api_request& request) {
    const auto kept = at.shared().store.decisions(request.path[1], limit_of(request));
    if (!kept) return fail(500, kept.error().what);
    json out = json::array();
    for (const auto& record : *kept) {
        auto body = record.body;
        body["id"] = record.id;
        out.push_back(std::move(body));
    }
    return good({{"decisions", std::move(out)}});
}

api_answer get_moves(controller& at, const api_request& request) {
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
    return good(std::move(body));
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

api_answer get_order(controller& at, const api_request& request) {
    const auto wanted = number(request.path[1]);
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

// ---- verbs

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

api_answer done_or_refused(const desk& tool, const tl::expected<void, std::string>& done) {
    if (!done) return fail(409, done.error(), "hotlane explain " + tool.name());
    json body{
        {"tool", tool.name()}, {"done", true}, {"next_steps", {"hotlane explain " + tool.name()}}};
    if (const auto why = tool.not_stored(); !why.empty())
        body["warning"] = "this holds until hotlane is restarted only: " + why;
    return good(std::move(body));
}

api_answer post_shard(controller& at, const api_request& request) {
    const auto tool = at.find(request.path[1]);
    if (!tool) return unknown_tool(at, request.path[1]);
    const auto action = text_of(request.body, "action");
    if (action == "done") return done_or_refused(*tool, tool->shard_done(who(request.body)));
    if (action == "skip") return done_or_refused(*tool, tool->shard_skip(who(request.body)));
    return fail(400, "`action` must be done or skip");
}

api_answer post_pin(controller& at, const api_request& request) {
    const auto tool = at.find(request.path[1]);
    if (!tool) return unknown_tool(at, request.path[1]);
    const auto home = home_of(request.body, "home");
    if (!home) return fail(400, "`home` must be engine or postgres");
    const auto length = request.body.find("for_s");
    if (length == request.body.end() || !length->is_number_unsigned() ||
        length->get<std::uint64_t>() == 0)
        return fail(400,
                    "a pin must end: `for_s` is missing or not a positive number of seconds",
                    "for example --for 2h");
    const auto longest =
        std::chrono::duration_cast<std::chrono::seconds>(tool->settings().rails.pin_max);
    if (length->get<std::uint64_t>() > static_cast<std::uint64_t>(longest.count()))
        return fail(400,
                    fmt::format("no pin may last longer than {} hours", longest.count() / 3600));
    policy::pin wanted;
    wanted.home = *home;
    wanted.until = at.shared().now() +
                   std::chrono::seconds(static_cast<long long>(length->get<std::uint64_t>()));
    wanted.by = who(request.body);
    wanted.reason = text_of(request.body, "reason").substr(0, reason_max);
    return done_or_refused(*tool, tool->set_pin(std::move(wanted)));
}

api_answer post_unpin(controller& at, const api_request& request) {
    const auto tool = at.find(request.path[1]);
    if (!tool) return unknown_tool(at, request.path[1]);
    return done_or_refused(*tool, tool->clear_pin(who(request.body)));
}

api_answer get_fleet(controller& at, const api_request&) {
    auto* const all = at.coordinates();
    if (all == nullptr)
        return fail(409, "this hotlane is alone: its state is a file", "state: {postgres: ...}");
    return good(all->view());
}

// What changes something is the leader's business; it is said where the leader is.
std::optional<api_answer> not_here(controller& at) {
    auto* const all = at.coordinates();
    if (all == nullptr || all->decides()) return std::nullopt;
    const auto view = all->view();
    for (const auto& s : view["sidecars"]) {
        if (s.value("leads", false) && !s.value("this", false))
            return fail(409,
                        "this hotlane follows; " + s.value("name", "another") + " leads the fleet",
                        "ask it there: its admin socket is " + s.value("admin", ""));
    }
    return fail(409, "nobody leads the fleet at the moment", "hotlane fleet");
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

api_answer post_reload(controller& at, const api_request&) {
    auto result = at.reload();
    const bool ok = result.value("ok", false);
    if (!ok) return {409, std::move(result)};
    return good(std::move(result));
}

// ---- the table

struct row {
    std::string_view method;
    std::array<std::string_view, 3> pattern;  // "*": any one segment; "": the path ends before
    api_answer (*run)(controller&, const api_request&);
};

constexpr std::array rows{
    row{"GET", {"status"}, get_status},
    row{"GET", {"fleet"}, get_fleet},
    row{"GET", {"tools"}, get_tools},
    row{"GET", {"tools", "*"}, get_tool},
    row{"GET", {"tools", "*", "explain"}, get_explain},
    row{"GET", {"tools", "*", "decisions"}, get_decisions},
    row{"GET", {"moves"}, get_moves},
    row{"GET", {"moves", "*"}, get_move},
    row{"POST", {"moves", "*"}, post_move},
    row{"GET", {"orders", "*"}, get_order},
    row{"POST", {"tools", "*", "route"}, post_route},
    row{"POST", {"tools", "*", "shard"}, post_shard},
    row{"POST", {"tools", "*", "pin"}, post_pin},
    row{"POST", {"tools", "*", "unpin"}, post_unpin},
    row{"POST", {"reload"}, post_reload},
};

bool fits(const row& r, const std::vector<std::string>& path) {
    std::size_t length = 0;
    while (length < r.pattern.size() && !r.pattern[length].empty())
        ++length;
    if (path.size() != length) return false;
    for (std::size_t i = 0; i < length; ++i) {
        if (r.pattern[i] != "*" && r.pattern[i] != path[i]) return false;
    }
    return true;
}

}  // namespace

api_answer answer(controller& at, const api_request& request) {
    bool is_known = false;
    for (const auto& r : rows) {
        if (!fits(r, request.path)) continue;
        if (r.method == request.method) {
            const bool is_local = r.method == "GET" || r.run == post_reload;
            if (auto elsewhere = is_local ? std::nullopt : not_here(at)) return *elsewhere;
            return r.run(at, request);
        }
        is_known = true;
    }
    if (is_known)
        return fail(405, request.method == "GET" ? "this acts: use POST" : "this reads: use GET");
    return fail(404, "no such path", "GET /api/v1/status, /api/v1/tools, /api/v1/moves");
}

}  // namespace hotlane::control
