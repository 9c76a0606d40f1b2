#include "router/control/api_parts.hpp"

#include <array>

#include <fmt/format.h>

#include "router/control/json.hpp"
#include "router/control/views.hpp"

namespace hotlane::control {

using admin::api_answer;
using admin::api_request;
using nlohmann::json;

namespace {

constexpr std::size_t reason_max = 500;

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

// ---- verbs

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
    if (view["this"]["state"] == "settling")
        return fail(
            409,
            "this hotlane leads the fleet only since a moment: it decides when one lease is "
            "over and the homes were read",
            "hotlane fleet");
    return fail(409, "nobody leads the fleet at the moment", "hotlane fleet");
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
    row{"POST", {"tools", "*", "adopt"}, post_adopt},
    row{"POST", {"tools", "*", "verify"}, post_verify},
    row{"GET", {"tools", "*", "eject"}, get_eject},
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
            const bool is_local = r.method == "GET" || r.run == post_reload || r.run == post_verify;
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
