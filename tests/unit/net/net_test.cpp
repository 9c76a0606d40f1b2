#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "router/net/address.hpp"
#include "router/net/connection.hpp"
#include "router/net/dialer.hpp"
#include "router/net/listener.hpp"
#include "router/net/server.hpp"

using namespace hotlane;
using namespace hotlane::net;
namespace fs = std::filesystem;

namespace {

struct folder {
    folder() {
        std::string name = (fs::temp_directory_path() / "net-XXXXXX").string();
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~folder() { fs::remove_all(path); }
    [[nodiscard]] std::string file(const char* name) const { return path / name; }
    fs::path path;
};

policy::time_point epoch() {
    return {};
}

config::model model_with(config::listener what) {
    config::model model;
    model.listen.push_back(std::move(what));
    return model;
}

// Dials and runs the io_context until the one callback has come.
std::string dial(const config::endpoint& to, dial_plan plan, int& calls) {
    asio::io_context io;
    std::mt19937 dice(1);
    std::string result;
    const auto d = std::make_shared<dialer>(io, dice, to, plan);
    d->start(
        [&](stream, const peer&) {
            ++calls;
            result = "connected";
        },
        [&](const std::string& why) {
            ++calls;
            result = why;
        });
    REQUIRE(calls == 0);  // never inside start()
    io.run();
    return result;
}

}  // namespace

TEST_CASE("addresses: literal, unix and names") {
    REQUIRE(literal_peer({"127.0.0.1", 5432}).has_value());
    REQUIRE(literal_peer({"::1", 5432}).has_value());
    REQUIRE_FALSE(literal_peer({"db.internal", 5432}).has_value());
    REQUIRE(unix_socket_path({"/run/pg", 5433}) == "/run/pg/.s.PGSQL.5433");
    REQUIRE(unix_peer("/run/x").has_value());
    REQUIRE_FALSE(unix_peer("/" + std::string(107, 'x')).has_value());
    REQUIRE_FALSE(unix_peer("").has_value());
    REQUIRE(describe({"::1", 1}) == "[::1]:1");
}

TEST_CASE("addresses: who is local") {
    REQUIRE(is_local(**literal_peer({"127.8.0.1", 1})));
    REQUIRE(is_local(**literal_peer({"::1", 1})));
    REQUIRE(is_local(**literal_peer({"::ffff:127.0.0.1", 1})));
    REQUIRE(is_local(*unix_peer("/run/x")));
    REQUIRE_FALSE(is_local(**literal_peer({"10.0.0.1", 1})));
    REQUIRE_FALSE(is_local(**literal_peer({"::ffff:10.0.0.1", 1})));
}

TEST_CASE("cancel keys: only the whole key opens, and a forgotten one opens nothing") {
    cancel_registry keys;
    const std::weak_ptr<connection> nobody;
    const auto one = keys.issue(7, nobody);
    const auto two = keys.issue(7, nobody);  // the same number at another home
    REQUIRE(one.size() == cancel_registry::secret_bytes);
    REQUIRE(one != two);
    REQUIRE(keys.size() == 2);
    keys.forget(8, one);
    keys.forget(7, "none");
    REQUIRE(keys.size() == 2);
    keys.forget(7, one);
    REQUIRE(keys.size() == 1);
    REQUIRE(keys.find(7, one) == nullptr);
}

TEST_CASE("the dialer tries until its deadline, then says why, once") {
    const folder in;
    int calls = 0;
    const auto began = steady::now();
    const auto why =
        dial({in.path, 1}, {.total = milliseconds{300}, .one = milliseconds{100}}, calls);
    REQUIRE(calls == 1);
    REQUIRE(why.find(".s.PGSQL.1") != std::string::npos);
    REQUIRE(steady::now() - began >= milliseconds{50});
    REQUIRE(steady::now() - began < milliseconds{5'000});
}

TEST_CASE("the dialer finds a home that comes up late") {
    const folder in;
    asio::io_context io;
    std::mt19937 dice(1);
    net_counters counted;
    bool connected = false;
    std::shared_ptr<listener> late;
    const auto d = std::make_shared<dialer>(io, dice, config::endpoint{in.path, 1}, dial_plan{});
    d->start(
        [&](stream, const peer&) {
            connected = true;
            io.stop();
        },
        [](const std::string& why) { FAIL(why); });
    timer opens(io);
    opens.expires_after(milliseconds{100});
    opens.async_wait([&](error_code) {
        auto made = listener::open(io, {.at = {in.path, 1}, .unix_path = {}}, counted);
        REQUIRE(made.has_value());
        late = made->front();
    });
    io.run();
    REQUIRE(connected);
}

TEST_CASE("a listener clears a stale socket file, and nothing else") {
    const folder in;
    asio::io_context io;
    net_counters counted;
    const config::listener what{.at = {}, .unix_path = in.file("s")};
    SECTION("stale") {
        const int dead = ::socket(AF_UNIX, SOCK_STREAM, 0);
        const auto at = *unix_peer(what.unix_path);
        REQUIRE(::bind(dead, at.data(), static_cast<socklen_t>(at.size())) == 0);
        ::close(dead);
        const auto made = listener::open(io, what, counted);
        REQUIRE(made.has_value());
        struct stat facts {};
        REQUIRE(::stat(what.unix_path.c_str(), &facts) == 0);
        REQUIRE((facts.st_mode & 0777) == 0600);
    }
    SECTION("in use") {
        const auto first = listener::open(io, what, counted);
        REQUIRE(first.has_value());
        const auto second = listener::open(io, what, counted);
        REQUIRE_FALSE(second.has_value());
        REQUIRE(second.error().find("another process listens") != std::string::npos);
        REQUIRE(fs::exists(what.unix_path));
    }
    SECTION("no socket") {
        std::ofstream(what.unix_path) << "precious";
        REQUIRE_FALSE(listener::open(io, what, counted).has_value());
        REQUIRE(fs::file_size(what.unix_path) == 8);
    }
}

TEST_CASE("the data plane reports ports, refuses a taken one, and stops twice") {
    placement::tool_table tools(config::model{});
    data_plane first(model_with({.at = {"127.0.0.1", 0}, .unix_path = {}}), tools, epoch);
    const auto bound = first.start();
    REQUIRE(bound.has_value());
    REQUIRE(bound->front().at.port != 0);
    data_plane second(
        model_with({.at = {"127.0.0.1", bound->front().at.port}, .unix_path = {}}), tools, epoch);
    const auto refused = second.start();
    REQUIRE_FALSE(refused.has_value());
    REQUIRE(refused.error().where.find("127.0.0.1") != std::string::npos);
    REQUIRE(first.stalest_tick() < milliseconds{5'000});
    first.stop(milliseconds{100});
    first.stop(milliseconds{100});
    first.poke_all("nobody");
}
