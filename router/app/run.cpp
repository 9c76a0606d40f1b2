#include "router/app/run.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <future>

#include <fmt/format.h>

#include "config/load.hpp"
#include "metrics/log.hpp"
#include "router/admin/server.hpp"
#include "router/app/exit_code.hpp"
#include "router/app/log_adapter.hpp"
#include "router/app/output.hpp"
#include "router/app/process.hpp"
#include "router/app/sidecar.hpp"
#include "router/control/clock.hpp"
#include "router/control/controller.hpp"
#include "router/control/sources.hpp"
#include "router/net/server.hpp"
#include "router/placement/fleet_store.hpp"
#include "router/placement/route.hpp"

namespace hotlane::app {

namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds drain_grace{10'000};
constexpr std::chrono::milliseconds tick_age_max{10'000};   // older: the data plane hangs
constexpr std::chrono::milliseconds first_look_max{5'000};  // for the homes to say where tools live

// A client costs a socket and its link. What is kept back is for moves, samples and the operator.
constexpr std::uint64_t files_a_client = 2;
constexpr std::uint64_t files_kept_back = 96;

// The model with no more clients than there can be open files for.
config::model fit_to_files(config::model model, std::uint64_t files) {
    const auto room = files > files_kept_back ? (files - files_kept_back) / files_a_client : 1;
    const auto wanted = static_cast<std::uint64_t>(std::max(1, model.limit.client_connections));
    if (room >= wanted) return model;
    talk(
        fmt::format("hotlane: warning: {} open files are allowed; limits.client_connections is {} "
                    "instead of {} (raise the limit, for example LimitNOFILE= or ulimit -n)",
                    files,
                    room,
                    wanted));
    model.limit.client_connections = static_cast<int>(room);
    return model;
}

// Everything that lives as long as the process, in the order of its making.
struct process {
    process(config::loaded read,
            const std::string& path,
            std::unique_ptr<placement::fleet_store> opened)
        : model(std::move(read.value)),
          log(log_options(model, clock)),
          store(std::move(opened)),
          tools(model),
          plane(fit_to_files(model, raise_open_files()), tools, [this] { return clock.now(); }),
          control(model,
                  tools,
                  *store,
                  world(),
                  control::real_sources([this] { return clock.now(); }, model.sample_timeout),
                  log_into(log),
                  hooks(path),
                  [this] { return clock.now(); },
                  {}) {
        if (!model.shared_state) return;
        control::coordinator::settings with;
        with.who = describe_sidecar(model);
        coordinator =
            std::make_unique<control::coordinator>(control.shared(), *store, std::move(with));
        control.join_fleet(*coordinator);
    }
    ~process() { control.stop(std::chrono::milliseconds{0}); }
    process(const process&) = delete;
    process& operator=(const process&) = delete;

    static metrics::log_options log_options(const config::model& model,
                                            const control::steady_wall_clock& clock) {
        metrics::log_options out;
        out.level = metrics::level_from(model.log.level);
        out.format = metrics::format_from(model.log.format);
        out.now = [&clock] { return clock.now(); };
        return out;
    }
    control::world world() {
        auto out = control::real_world();
        out.poke = [this](const std::string& tool) { plane.poke_all(tool); };
        out.measure = [budget = model.sample_timeout](const config::tool& tool,
                                                      const config::model& with) {
            return control::measure_target(tool, with, budget);
        };
        return out;
    }
    control::process_hooks hooks(const std::string& path) {
        control::process_hooks out;
        out.version = HOTLANE_VERSION;
        out.config_path = path;
        out.data_plane_alive = [this] { return plane.stalest_tick() < tick_age_max; };
        out.addresses = [this] { return addresses; };
        out.figures = [this](metrics::snapshot& into) { count(into); };
        return out;
    }
    // Metric labels carry no unit.
    static std::string exported(std::string_view limit) {
        constexpr std::string_view unit = "_bytes";
        if (limit.ends_with(unit)) limit.remove_suffix(unit.size());
        return std::string(limit);
    }
    void count(metrics::snapshot& into) {
        const auto& c = plane.counters();
        into.client_connections =
            static_cast<std::uint64_t>(std::max<std::int64_t>(0, c.connections.load()));
        into.client_connections_total = c.accepted.load();
        for (std::size_t i = 0; i < net::limit_names.size(); ++i)
            into.limit_hits[exported(net::limit_names[i])] += c.limit_hits[i].load();
        into.log_suppressed = log.suppressed_total();
    }

    control::steady_wall_clock clock;
    config::model model;
    json addresses = json::object();  // written before the API is served
    metrics::event_log log;
    std::unique_ptr<placement::fleet_store> store;
    placement::tool_table tools;
    net::data_plane plane;
    control::controller control;
    std::unique_ptr<control::coordinator> coordinator;  // one of many; empty: alone
    std::unique_ptr<admin::server> api;
};

int fail(process& p, const std::string& where, const std::string& what) {
    p.log.error("cannot_bind", {{"where", where}, {"reason", what}});
    talk(fmt::format("hotlane: {}: {}", where, what));
    return cannot_bind;
}

// The homes first (a client that comes before its tool is placed would be refused), then clients,
// then the API: what answers at the admin socket is a process that serves.
int start(process& p) {
    p.control.start();
    p.control.wait_for_first_look(first_look_max);
    const auto bound = p.plane.start();
    if (!bound) return fail(p, bound.error().where, bound.error().what);
    json clients = json::array();
    for (const auto& each : *bound)
        clients.push_back(each.text());
    p.addresses["clients"] = clients;
    p.addresses["admin"] = p.model.admin_socket;

    admin::server_options options;
    options.unix_path = p.model.admin_socket;
    if (p.model.metrics_listen) {
        options.metrics_tcp = true;
        options.metrics_host = p.model.metrics_listen->host;
        options.metrics_port = p.model.metrics_listen->port;
    }
    auto api = admin::server::start(options, p.control);
    if (!api) return fail(p, "admin", api.error().what);
    p.api = std::move(*api);
    std::string metrics_at;
    if (p.model.metrics_listen)
        metrics_at = fmt::format("{}:{}", p.model.metrics_listen->host, p.api->metrics_port());
    p.log.info("ready",
               {{"version", HOTLANE_VERSION},
                {"clients", clients.dump()},
                {"admin", p.model.admin_socket},
                {"metrics", metrics_at},
                {"tools", p.tools.all().size()},
                {"config_hash", p.model.hash}});
    notify_service_manager("READY=1");
    return ok;
}

void serve(process& p) {
    while (true) {
        const int number = wait_for_signal();
        if (number != SIGHUP) {
            p.log.info("stopping", {{"signal", number == SIGTERM ? "SIGTERM" : "SIGINT"}});
            return;
        }
        notify_service_manager("RELOADING=1");
        p.control.reload();
        notify_service_manager("READY=1");
    }
}

// Clients get the grace to finish their transactions, and a move its chance to end or go back; both
// at the same time.
void stop(process& p) {
    notify_service_manager("STOPPING=1");
    end_at_next_signal();
    p.control.drain();
    auto moves = std::async(std::launch::async, [&p] { return p.control.stop(drain_grace); });
    p.plane.stop(drain_grace);
    const bool ended = moves.get();
    if (p.api) p.api->stop();
    if (!ended) p.log.warn("move_left", {{"reason", "recovery ends it at the next start"}});
    p.log.info("stopped", {{"clean", ended}});
    // A move that still runs must not see its surroundings destroyed; its journal is what counts.
    if (!ended) std::_Exit(ok);
}

}  // namespace

int run(const std::string& config_path) {
    auto read = config::load_file(config_path);
    if (!read) {
        talk(read.error().text);
        return invalid_config;
    }
    if (!read->text.empty()) talk(read->text);
    forbid_core_dumps();
    block_signals();
    auto store = open_store(read->value);
    if (!store) {
        talk("hotlane: " + store.error().what);
        return failed;
    }
    const auto p = std::make_unique<process>(std::move(*read), config_path, std::move(*store));
    const int started = start(*p);
    if (started == ok) serve(*p);
    stop(*p);
    return started;
}

}  // namespace hotlane::app
