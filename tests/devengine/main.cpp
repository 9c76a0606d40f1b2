// hotlane-devengine: a test double for the engine kind `twill`.
#include <csignal>

#include <charconv>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tests/devengine/server.hpp"

namespace {

using namespace hotlane::devengine;

// `5ms`, `0.9us`, `0`: a number and its unit.
std::optional<nanoseconds> parse_duration(const std::string& text) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || number < 0) return std::nullopt;
    const std::string unit(end, text.data() + text.size());
    double factor = 0;
    if (unit == "ns") factor = 1;
    if (unit == "us") factor = 1e3;
    if (unit == "ms") factor = 1e6;
    if (unit == "s") factor = 1e9;
    if (factor == 0 && number != 0) return std::nullopt;
    return nanoseconds(static_cast<std::int64_t>(number * factor));
}

void duration_option(CLI::App& app,
                     const std::string& name,
                     nanoseconds& target,
                     const std::string& help) {
    app.add_option_function<std::string>(
        name,
        [&target, name](const std::string& text) {
            const auto parsed = parse_duration(text);
            if (!parsed) throw CLI::ValidationError(name, "not a duration: " + text);
            target = *parsed;
        },
        help);
}

// NAME:PORT[:FILE]
database_options parse_database(const std::string& text, const std::filesystem::path& data) {
    const auto first = text.find(':');
    const auto second = first == std::string::npos ? first : text.find(':', first + 1);
    if (first == std::string::npos || first == 0)
        throw std::runtime_error("--database wants NAME:PORT[:FILE], not " + text);
    database_options options{.name = text.substr(0, first)};
    const auto port =
        text.substr(first + 1, second == std::string::npos ? second : second - first - 1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), options.port);
    if (error != std::errc{} || end != port.data() + port.size())
        throw std::runtime_error("not a port: " + port);
    const auto file = second == std::string::npos ? options.name + ".db" : text.substr(second + 1);
    options.file = data / file;
    return options;
}

void serve(const options& opts, const sigset_t& signals) {
    std::vector<std::unique_ptr<server>> servers;
    for (const auto& database : opts.databases)
        servers.push_back(std::make_unique<server>(opts.host, database, opts.cost));
    for (std::size_t i = 0; i < servers.size(); ++i) {
        servers[i]->start();
        std::cout << "listening " << opts.databases[i].name << ' ' << opts.host << ':'
                  << servers[i]->port() << '\n';
    }
    std::cout << "ready" << std::endl;
    int signal = 0;
    sigwait(&signals, &signal);
}

}  // namespace

int main(int argc, char** argv) {
    options opts;
    std::vector<std::string> databases;
    std::string data{"."};
    CLI::App app{
        "hotlane-devengine is a TEST DOUBLE for the engine kind `twill`: it imitates the\n"
        "engine's protocol, lane, counters and limits on SQLite files. Not for real data."};
    app.add_option("--database", databases, "NAME:PORT[:FILE]; port 0 picks a free one")
        ->required();
    app.add_option("--data", data, "folder of the database files");
    app.add_option("--host", opts.host, "address to listen on");
    auto& cost = opts.cost;
    duration_option(app, "--commit-latency", cost.commit_latency, "queued until durable (5ms)");
    duration_option(
        app, "--scan-cost", cost.write_scan, "a write's cost for each row of its table (0.9us)");
    duration_option(
        app, "--update-cost", cost.update_base, "an UPDATE's own time in the lane (0.2ms)");
    duration_option(app, "--conflict-cost", cost.conflict, "a conflict's time in the lane (0.6ms)");
    duration_option(
        app, "--insert-cost", cost.inserted_row, "time in the lane for each new row (40us)");
    CLI11_PARSE(app, argc, argv);
    cost.read_scan = cost.write_scan / 3;
    cost.returned_row = cost.write_scan * 3;

    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    try {
        std::filesystem::create_directories(data);
        for (const auto& text : databases)
            opts.databases.push_back(parse_database(text, data));
        serve(opts, signals);
    } catch (const std::exception& e) {
        std::cerr << "hotlane-devengine: " << e.what() << '\n';
        return 1;
    }
    return 0;
}
