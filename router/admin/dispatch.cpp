#include "router/admin/dispatch.hpp"

#include <array>
#include <exception>

#include "router/admin/target.hpp"

namespace hotlane::admin {

namespace {

using nlohmann::json;

std::string dump(const json& body) {
    // Names of tools come from clients: invalid UTF-8 must not throw here.
    return body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

http_answer fail(int status, std::string_view error, std::string_view hint) {
    return {status, "application/json", dump({{"error", error}, {"hint", hint}}), ""};
}

enum class probe { none, live, ready, metrics };

probe probe_of(const std::string& name) {
    struct row {
        std::string_view name;
        probe what;
    };
    static constexpr std::array<row, 6> rows{{{"livez", probe::live},
                                              {"liveness", probe::live},
                                              {"readyz", probe::ready},
                                              {"readiness", probe::ready},
                                              {"startup", probe::ready},
                                              {"metrics", probe::metrics}}};
    for (const auto& r : rows) {
        if (r.name == name) return r.what;
    }
    return probe::none;
}

http_answer answer_probe(probe what, service& from) {
    switch (what) {
        case probe::none:
            break;
        case probe::metrics:
            return {200, "text/plain; version=0.0.4; charset=utf-8", from.metrics_text(), ""};
        case probe::live: {
            const bool ok = from.live();
            return {ok ? 200 : 503, "application/json", dump({{"live", ok}}), ""};
        }
        case probe::ready: {
            std::vector<std::string> failed;
            const bool ok = from.ready(failed);
            return {
                ok ? 200 : 503, "application/json", dump({{"ready", ok}, {"failed", failed}}), ""};
        }
    }
    return fail(404, "no such path", "");
}

http_answer answer_api(const std::string& method,
                       target where,
                       const std::string& body,
                       service& what) {
    api_request request;
    request.method = method;
    request.path.assign(where.segments.begin() + 2, where.segments.end());
    request.query = std::move(where.query);
    request.body = json::object();
    if (method == "POST" && !body.empty()) {
        request.body = json::parse(body, nullptr, false);
        if (!request.body.is_object())
            return fail(400, "the body is not a JSON object", R"(for example {"to": "postgres"})");
    }
    const auto answer = what.handle(request);
    http_answer out{answer.status, "application/json", dump(answer.body), ""};
    if (answer.status == 405) out.allow = method == "GET" ? "POST" : "GET";
    return out;
}

}  // namespace

http_answer dispatch(door by,
                     const std::string& method,
                     std::string_view target_text,
                     const std::string& body,
                     service& what) try {
    auto where = parse_target(target_text);
    if (!where) return fail(400, "the request target is malformed", "");
    if (where->segments.size() == 1) {
        const auto kind = probe_of(where->segments[0]);
        if (kind != probe::none) {
            if (method == "GET" || method == "HEAD") return answer_probe(kind, what);
            auto refused = fail(405, "this path is read with GET", "");
            refused.allow = "GET";
            return refused;
        }
    }
    const bool is_api =
        where->segments.size() >= 3 && where->segments[0] == "api" && where->segments[1] == "v1";
    if (!is_api)
        return fail(404, "no such path", "see GET /api/v1/status, /metrics, /livez, /readyz");
    if (by == door::tcp)
        return fail(404, "the API is not served here", "use the admin unix socket");
    if (method != "GET" && method != "POST") {
        auto refused = fail(405, "method not allowed", "GET reads, POST acts");
        refused.allow = "GET, POST";
        return refused;
    }
    return answer_api(method, std::move(*where), body, what);
} catch (const std::exception& e) {
    return fail(500, e.what(), "");
}

}  // namespace hotlane::admin
