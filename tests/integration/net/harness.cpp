// The data plane alone in front of one home, driven by lines on stdin: for trying it with real
// clients and servers without a control plane or a configuration file.
//
//   net-harness HOST PORT [threads N] [clients N] [password P] [unix PATH] [database GLOB]
//               [isolation LEVEL] [home engine] [pool session|transaction|MAX] [links MAX]
//               [pool_min N] [pool_idle MS] [pool_wait MS] [pool_notice MS] [pool_life MS]
//               [statements N] [retry ATTEMPTS]
//   stdin: hold | release | drain MS | close | place HOST PORT | poke | stats | quit
#include <fstream>
#include <iostream>
#include <sstream>

#include "router/net/server.hpp"
#include "router/placement/route.hpp"

using namespace hotlane;

namespace {

policy::time_point wall() {
    return std::chrono::time_point_cast<policy::duration>(std::chrono::system_clock::now());
}

long resident_kb() {
    std::ifstream status("/proc/self/status");
    std::string word;
    long value = 0;
    while (status >> word) {
        if (word == "VmRSS:") status >> value;
    }
    return value;
}

std::string closed(const placement::counters& counted) {
    std::string out = "{";
    for (std::size_t i = 0; i < placement::link_ends.size(); ++i)
        out += (i == 0 ? "\"" : ",\"") + std::string(placement::link_ends[i]) +
               "\":" + std::to_string(counted.links_closed[i].load());
    return out + "}";
}

void print_stats(const net::data_plane& plane, const placement::tool_entry& tool) {
    const auto& net = plane.counters();
    const auto& counted = tool.counted;
    std::cout << "{\"accepted\":" << net.accepted << ",\"connections\":" << net.connections
              << ",\"before_login\":" << net.before_login << ",\"sessions\":" << net.sessions
              << ",\"refused\":" << net.refused << ",\"cancels\":" << net.cancels
              << ",\"cancels_unmatched\":" << net.cancels_unmatched
              << ",\"cancels_in_flight\":" << net.cancels_in_flight
              << ",\"inside\":" << tool.gate.inside() << ",\"waiting\":" << tool.gate.waiting()
              << ",\"transactions\":" << counted.transactions
              << ",\"writes\":" << counted.write_transactions
              << ",\"conflicts\":" << counted.write_conflicts << ",\"errors\":" << counted.errors
              << ",\"unknown\":" << counted.unknown_outcomes << ",\"held\":" << counted.held
              << ",\"hold_refused\":" << counted.hold_refused
              << ",\"link_opens\":" << counted.link_opens
              << ",\"link_failures\":" << counted.link_failures
              << ",\"switched\":" << counted.switched << ",\"links_open\":" << counted.links_open
              << ",\"links_lent\":" << counted.links_lent
              << ",\"link_waiters\":" << counted.link_waiters
              << ",\"link_waits\":" << counted.link_waits << ",\"pinned\":" << counted.pinned_now
              << ",\"retried\":" << counted.retries[0]
              << ",\"retry_exhausted\":" << counted.retries[1]
              << ",\"retry_too_large\":" << counted.retries[2]
              << ",\"retry_tries\":" << counted.retry_tries << ",\"closed\":" << closed(counted)
              << ",\"tick_ms\":" << plane.stalest_tick().count() << ",\"rss_kb\":" << resident_kb()
              << "}" << std::endl;
}

config::isolation_override::level level_named(const std::string& name) {
    using level = config::isolation_override::level;
    if (name == "serializable") return level::serializable;
    return name == "repeatable_read" ? level::repeatable_read : level::read_committed;
}

void obey(std::istringstream& line, net::data_plane& plane, placement::tool_entry& tool) {
    std::string word;
    line >> word;
    if (word == "hold") {
        tool.gate.hold();
    } else if (word == "release") {
        tool.gate.release();
    } else if (word == "drain") {
        int ms = 0;
        line >> ms;
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds{ms};
        std::cout << (tool.gate.drain(until) ? "drained" : "busy") << std::endl;
        return;
    } else if (word == "close") {
        tool.close("closed by the harness");
    } else if (word == "place") {
        placement::home to = tool.current()->at;
        line >> to.at.host >> to.at.port;
        tool.place(to, tool.current()->epoch + 1);
    } else if (word == "poke") {
        plane.poke_all(tool.name);
    } else if (word == "stats") {
        print_stats(plane, tool);
        return;
    }
    std::cout << "ok" << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    placement::home home;
    home.kind = policy::home_kind::postgres;
    home.at = {argv[1], static_cast<std::uint16_t>(std::stoi(argv[2]))};
    config::model model;
    config::tool settings;
    settings.name = "tool";
    settings.match.database = "postgres";
    model.listen.push_back({.at = {"127.0.0.1", 0}, .unix_path = {}});
    config::pool_settings pool;
    pool.share = config::pool_settings::mode::session;
    int retry = 0;
    for (int i = 3; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        const std::string value = argv[i + 1];
        if (name == "threads") model.threads = std::stoi(value);
        if (name == "clients") model.limit.client_connections = std::stoi(value);
        if (name == "before_login") model.limit.clients_before_login = std::stoi(value);
        if (name == "login_ms")
            model.limit.login_timeout = std::chrono::milliseconds(std::stoi(value));
        if (name == "password") home.password = value;
        if (name == "database") settings.match.database = value;
        if (name == "isolation") settings.isolation = {level_named(value), "asked for"};
        if (name == "unix") model.listen.push_back({.at = {}, .unix_path = value});
        if (name == "home" && value == "engine") home.kind = policy::home_kind::engine;
        if (name == "pool" && value != "session") {
            pool.share = config::pool_settings::mode::transaction;
            if (value != "transaction") pool.max = std::stoi(value);
        }
        const std::chrono::milliseconds ms{std::atoi(value.c_str())};
        if (name == "links") pool.max = std::stoi(value);
        if (name == "pool_min") pool.min = std::stoi(value);
        if (name == "pool_idle") pool.idle = ms;
        if (name == "pool_wait") pool.wait = ms;
        if (name == "pool_life") pool.lifetime = ms;
        if (name == "pool_notice") pool.notice = ms;
        if (name == "statements") pool.statements = std::stoi(value);
        if (name == "retry") retry = std::stoi(value);
    }
    settings.pool = pool;
    model.tools.push_back(settings);
    placement::tool_table tools(model);
    const auto tool = tools.find("tool");
    tool->place(home, 1);
    if (retry > 0) {
        tool->retry.attempts = retry;
        tool->retry.time_ms = 30'000;
        tool->retry.pause_first_ms = 2;
        tool->retry.pause_max_ms = 100;
        tool->retry.bytes_max = 65'536;
        tool->retry.on = true;
    }
    net::data_plane plane(model, tools, wall);
    const auto bound = plane.start();
    if (!bound) {
        std::cerr << bound.error().where << ": " << bound.error().what << std::endl;
        return 1;
    }
    for (const auto& each : *bound)
        std::cout << "listening " << each.text() << std::endl;
    std::cout << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line) && line != "quit";) {
        std::istringstream words(line);
        obey(words, plane, *tool);
    }
    plane.stop(std::chrono::milliseconds{2'000});
    std::cout << "stopped" << std::endl;
    return 0;
}
