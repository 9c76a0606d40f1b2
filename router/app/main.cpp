// The command line: words, options, help. What the commands do is in their own files.
#include <functional>
#include <map>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "router/app/check.hpp"
#include "router/app/commands.hpp"
#include "router/app/exit_code.hpp"
#include "router/app/offline.hpp"
#include "router/app/run.hpp"

namespace {

using namespace hotlane::app;

// What the parsed words end in.
struct command_line {
    CLI::App app{
        "hotlane keeps applications on the right database.\n"
        "Examples:\n"
        "  hotlane check hotlane.yaml\n"
        "  hotlane test policies.test.yaml\n"
        "  hotlane replay --policy hotlane.yaml /var/lib/hotlane/record\n"
        "  hotlane run --config hotlane.yaml\n"
        "  hotlane tools\n"
        "  hotlane explain counter\n"
        "  hotlane route counter --to postgres            (dry run)\n"
        "  hotlane route counter --to postgres --execute --wait\n",
        "hotlane"};
    std::function<int()> chosen;
    client_options client;
    std::string path;
    std::string tool;
    std::string move;
    route_options route;
    adopt_options adopt;
    pin_options pin;
    std::string length;
    int limit{20};
    replay_command replay;
    std::vector<std::string> files;
    bool live{false};
    bool effective{false};
    bool watch{false};
};

void add_output(command_line& c, CLI::App& to) {
    static const std::map<std::string, format> formats{{"table", format::table},
                                                       {"json", format::json}};
    to.add_option("-o,--output", c.client.as, "table or json")
        ->transform(CLI::CheckedTransformer(formats));
}

// A command that talks to the running hotlane.
CLI::App& add_client(command_line& c,
                     CLI::App& parent,
                     const std::string& word,
                     const std::string& help,
                     std::function<int()> what) {
    auto* const sub = parent.add_subcommand(word, help);
    sub->add_option("--admin-socket", c.client.socket, "the running hotlane's admin socket")
        ->envname("HOTLANE_ADMIN_SOCKET")
        ->capture_default_str();
    add_output(c, *sub);
    sub->callback([&c, run = std::move(what)] { c.chosen = run; });
    return *sub;
}

void add_tool(command_line& c, CLI::App& to) {
    const auto is_a_name = [](const std::string& text) {
        return text.empty() ? std::string("a tool's name is not empty") : std::string{};
    };
    to.add_option("TOOL", c.tool, "the tool's name, as `hotlane tools` shows it")
        ->required()
        ->check(is_a_name);
}

void add_offline(command_line& c) {
    auto* const play = c.app.add_subcommand(
        "replay", "What would this policy have done? Recorded samples through the same code");
    auto& r = c.replay;
    play->add_option("TRACE", r.traces, "CSV traces, or files that `record:` wrote, oldest first")
        ->required();
    play->add_option("--policy", r.policy_file, "the configuration whose policy is tried")
        ->required();
    play->add_option("--use", r.use, "the policy's name; default: that of the recorded tool");
    play->add_option("--compare", r.compare_file, "another configuration: say what differs");
    play->add_option("--mode", r.mode, "instead of the policy's own")
        ->check(CLI::IsMember({"observe", "advise", "act"}));
    play->add_option("--move-takes", r.move_takes, "how long a move takes")->capture_default_str();
    play->add_option("--move-holds", r.move_holds, "how long it holds clients")
        ->capture_default_str();
    play->add_flag("--summary", r.only_sums, "leave the timeline out");
    add_output(c, *play);
    play->callback([&c] { c.chosen = [&c] { return replay(c.replay, c.client.as); }; });

    auto* const test =
        c.app.add_subcommand("test", "Run unit tests of policies; exit 1 if one fails");
    test->add_option("FILE", c.files, "test files")->required();
    add_output(c, *test);
    test->callback([&c] { c.chosen = [&c] { return test_policies(c.files, c.client.as); }; });
}

void add_local(command_line& c) {
    auto* const serve = c.app.add_subcommand("run", "Serve clients until SIGTERM");
    serve->add_option("-c,--config", c.path, "the configuration file")->required();
    serve->callback([&c] { c.chosen = [&c] { return run(c.path); }; });

    auto* const look = c.app.add_subcommand("check", "Check a configuration file; exit 3 if bad");
    look->add_option("FILE", c.path, "the configuration file")->required();
    look->add_flag("--effective", c.effective, "print what is in force and where it was written");
    look->add_flag("--live", c.live, "look at the running hotlane too: what has come true already");
    look->add_option("--admin-socket", c.client.socket, "for --live")
        ->envname("HOTLANE_ADMIN_SOCKET")
        ->capture_default_str();
    add_output(c, *look);
    look->callback([&c] {
        c.chosen = [&c] { return check(c.path, {c.effective, c.live}, c.client); };
    });

    add_offline(c);

    auto* const version = c.app.add_subcommand("version", "Print the version");
    version->callback([&c] {
        c.chosen = [] {
            print(fmt::format("hotlane {}\n", HOTLANE_VERSION));
            return static_cast<int>(ok);
        };
    });
}

void add_readers(command_line& c) {
    add_client(c, c.app, "status", "How this hotlane is", [&c] { return show_status(c.client); });
    add_client(
        c, c.app, "fleet", "All hotlanes that share the state: who leads, leases, clocks", [&c] {
            return show_fleet(c.client);
        });
    add_client(c, c.app, "tools", "All tools: home, stage, figures", [&c] {
        return show_tools(c.client);
    });
    add_tool(c, add_client(c, c.app, "where", "Where a tool lives", [&c] {
                 return show_where(c.client, c.tool);
             }));
    add_tool(c,
             add_client(c,
                        c.app,
                        "explain",
                        "How a tool stands, why, what would change it, and what to do",
                        [&c] { return show_explain(c.client, c.tool); }));
    auto& moves = add_client(c, c.app, "moves", "Moves, newest first; or all about one", [&c] {
        if (c.watch) return watch_moves(c.client, c.move);
        return c.move.empty() ? show_moves(c.client, c.limit) : show_move(c.client, c.move);
    });
    moves.add_flag(
        "--watch", c.watch, "follow what runs: phase, rows, rate, rest, what it waits for");
    moves.add_option("MOVE", c.move, "the move's id, as `hotlane moves` shows it");
    moves.add_option("--limit", c.limit, "how many")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
}

void add_looks(command_line& c) {
    add_tool(c,
             add_client(c,
                        c.app,
                        "verify",
                        "Compare a tool's home with what its last move left; changes nothing",
                        [&c] { return verify_tool(c.client, c.tool); }));
    auto& eject = add_client(
        c, c.app, "eject", "Write down how to run a tool without hotlane; changes nothing", [&c] {
            return eject_tool(c.client, c.tool);
        });
    add_tool(c, eject);
    eject.add_flag("--dry-run")->description("it never does more");
}

void add_route(command_line& c) {
    auto& route = add_client(
        c, c.app, "route", "Move a tool; without --execute only say what would happen", [&c] {
            c.route.tool = c.tool;
            return order_route(c.client, c.route);
        });
    add_tool(c, route);
    route.add_option("--to", c.route.to, "engine or postgres")
        ->required()
        ->check(CLI::IsMember({"engine", "postgres"}));
    auto* const execute = route.add_flag("--execute", c.route.execute, "do it");
    route.add_flag("--dry-run")
        ->description("only say what would happen (the default)")
        ->excludes(execute);
    route.add_flag("--wait", c.route.wait, "wait for the end; exit 1 or 6 if it did not move");
}

void add_adopt(command_line& c) {
    auto& adopt = add_client(
        c,
        c.app,
        "adopt",
        "Say which home of a tool holds where they cannot tell (PostgreSQL was restored); without "
        "--execute only what each has",
        [&c] { return adopt_home(c.client, c.tool, c.adopt); });
    add_tool(c, adopt);
    adopt.add_option("--home", c.adopt.home, "engine or postgres")
        ->required()
        ->check(CLI::IsMember({"engine", "postgres"}));
    auto* const execute = adopt.add_flag("--execute", c.adopt.execute, "do it");
    adopt.add_flag("--dry-run")
        ->description("only say what it would mean (the default)")
        ->excludes(execute);
}

int pin_now(command_line& c) {
    const auto length = parse_length(c.length);
    if (!length) {
        talk(fmt::format(
            "hotlane: --for {}: needs a number and a unit, for example 90s, 30m, 2h, 1d",
            c.length));
        return usage;
    }
    c.pin.tool = c.tool;
    c.pin.length = *length;
    return set_pin(c.client, c.pin);
}

void add_moves(command_line& c) {
    auto* const move = c.app.add_subcommand("move", "What can be done about one move");
    move->require_subcommand(1);
    const auto add = [&](const char* word, const char* help) -> CLI::App& {
        auto& sub = add_client(c, *move, word, help, [&c, word] {
            return act_on_move(c.client, c.move, word, c.route.wait);
        });
        sub.add_option("MOVE", c.move, "the move's id, as `hotlane moves` shows it")->required();
        return sub;
    };
    add("abort", "Stop a running move; the tool stays at its old home");
    add("reverse", "Bring the tool back to where this move took it from")
        .add_flag("--wait", c.route.wait, "wait for the end; exit 1 or 6 if it did not move");
    add("complete", "Drop the fenced copy now instead of after `keep`");
}

void add_verbs(command_line& c) {
    add_looks(c);
    add_route(c);
    add_adopt(c);
    add_moves(c);
    auto* const shard = c.app.add_subcommand("shard", "Answer the advice to shard a hot row");
    shard->require_subcommand(1);
    add_tool(c, add_client(c, *shard, "done", "The hot row is sharded: measure again", [&c] {
                 return end_shard(c.client, c.tool, "done");
             }));
    add_tool(c, add_client(c, *shard, "skip", "It cannot be sharded: next lever", [&c] {
                 return end_shard(c.client, c.tool, "skip");
             }));

    auto& pin = add_client(
        c, c.app, "pin", "Keep a tool at a home for a while", [&c] { return pin_now(c); });
    add_tool(c, pin);
    pin.add_option("--home", c.pin.home, "engine or postgres")
        ->required()
        ->check(CLI::IsMember({"engine", "postgres"}));
    pin.add_option("--for", c.length, "how long, for example 2h; every pin ends")->required();
    pin.add_option("--reason", c.pin.reason, "why, for those who come after");
    add_tool(c, add_client(c, c.app, "unpin", "End a pin", [&c] {
                 return clear_pin(c.client, c.tool);
             }));
    add_client(
        c, c.app, "reload", "Read the configuration again; a bad file changes nothing", [&c] {
            return order_reload(c.client);
        });
}

}  // namespace

int main(int argc, char** argv) try {
    command_line c;
    c.app.require_subcommand(1);
    c.app.set_help_all_flag("--help-all", "help of all commands");
    c.app.set_version_flag("--version", std::string("hotlane ") + HOTLANE_VERSION);
    add_local(c);
    add_readers(c);
    add_verbs(c);
    try {
        c.app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return c.app.exit(e) == 0 ? ok : usage;
    }
    return c.chosen();
} catch (const std::exception& e) {
    talk(std::string("hotlane: ") + e.what());
    return failed;
}
