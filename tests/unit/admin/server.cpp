#include "router/admin/server.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "router/admin/client.hpp"
#include "router/admin/target.hpp"
#include "tests/unit/admin/raw.hpp"

using namespace hotlane::admin;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

struct fake_service : service {
    api_answer handle(const api_request& request) override {
        ++calls;
        if (request.path == std::vector<std::string>{"block"}) {
            ++blocked;
            block.wait();
        }
        if (request.path == std::vector<std::string>{"boom"}) throw std::runtime_error("boom");
        if (request.method == "GET" && request.path.back() == "route") return {405, {}};
        return {200,
                {{"method", request.method},
                 {"path", request.path},
                 {"query", request.query},
                 {"body", request.body}}};
    }
    std::string metrics_text() override { return "hotlane_up 1\n"; }
    bool live() override { return true; }
    bool ready(std::vector<std::string>& failed) override {
        if (!is_ready) failed.push_back("draining");
        return is_ready;
    }
    std::atomic<int> calls{0};
    std::atomic<int> blocked{0};
    std::future<void> block;
    std::atomic<bool> is_ready{true};
};

struct served {
    explicit served(server_limits limit = {}) {
        folder = std::filesystem::temp_directory_path() /
                 ("hotlane-admin-" + std::to_string(::getpid()) + "-" + std::to_string(++count));
        std::filesystem::create_directories(folder);
        server_options options;
        options.unix_path = folder / "admin.sock";
        options.metrics_tcp = true;
        options.limit = limit;
        path = options.unix_path;
        auto started = server::start(options, what);
        REQUIRE(started.has_value());
        running = std::move(*started);
    }
    ~served() {
        running.reset();
        std::filesystem::remove_all(folder);
    }
    client_answer ask(const std::string& method, const std::string& target, json body = {}) {
        auto got = call(path, method, target, body, 5s);
        REQUIRE(got.has_value());
        return *got;
    }
    static inline std::atomic<int> count{0};
    fake_service what;
    std::filesystem::path folder;
    std::string path;
    std::unique_ptr<server> running;
};

}  // namespace

TEST_CASE("the API is served on the unix socket, with path, query and body taken apart") {
    served s;
    const auto got = s.ask("POST", "/api/v1/tools/a%20b/route?x=1&y=%2F", {{"to", "postgres"}});
    CHECK(got.status == 200);
    CHECK(got.body["path"] == json({"tools", "a b", "route"}));
    CHECK(got.body["query"] == json({{"x", "1"}, {"y", "/"}}));
    CHECK(got.body["body"]["to"] == "postgres");
}

TEST_CASE("only the owner may open the socket") {
    served s;
    struct stat info {};
    REQUIRE(::stat(s.path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("GET on a verb is refused and says what would do") {
    served s;
    CHECK(s.ask("GET", "/api/v1/tools/a/route").status == 405);
    CHECK(s.ask("DELETE", "/api/v1/tools/a").status == 405);
}

TEST_CASE("TCP carries probes and metrics, never the API") {
    served s;
    const auto port = s.running->metrics_port();
    CHECK(raw_tcp(port, "GET /metrics HTTP/1.0\r\n\r\n").find("hotlane_up 1") != std::string::npos);
    for (const char* path : {"/livez", "/readyz", "/liveness", "/readiness", "/startup"}) {
        const auto text = raw_tcp(port, "GET " + std::string(path) + " HTTP/1.0\r\n\r\n");
        CHECK(text.rfind("HTTP/1.0 200", 0) == 0);
    }
    const auto api = raw_tcp(port, "GET /api/v1/status HTTP/1.0\r\n\r\n");
    CHECK(api.rfind("HTTP/1.0 404", 0) == 0);
    const auto verb =
        raw_tcp(port, "POST /api/v1/tools/a/route HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}");
    CHECK(verb.rfind("HTTP/1.0 404", 0) == 0);
    CHECK(raw_tcp(port, "POST /readyz HTTP/1.0\r\n\r\n").rfind("HTTP/1.0 405", 0) == 0);
    CHECK(s.what.calls == 0);
}

TEST_CASE("readiness fails with its reasons") {
    served s;
    s.what.is_ready = false;
    const auto got = s.ask("GET", "/readyz");
    CHECK(got.status == 503);
    CHECK(got.body["failed"] == json({"draining"}));
}

TEST_CASE("broken input is answered, not passed on") {
    served s;
    const auto port = s.running->metrics_port();
    CHECK(raw_tcp(port, "garbage\r\n\r\n").rfind("HTTP/1.1 400", 0) == 0);
    CHECK(raw_tcp(port, "GET /metrics HTTP/1.0\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n")
              .rfind("HTTP/1.1 413", 0) == 0);
    CHECK(s.ask("GET", "/api/v1/%zz").status == 400);
    CHECK(s.ask("POST", "/api/v1/tools/a/route", json::array({1})).status == 400);
    CHECK(s.ask("POST", "/api/v1/x", {{"big", std::string(100'000, 'x')}}).status == 413);
    CHECK(s.what.calls == 0);
}

TEST_CASE("an exception of the service is an answer") {
    served s;
    const auto got = s.ask("GET", "/api/v1/boom");
    CHECK(got.status == 500);
    CHECK(got.body["error"] == "boom");
}

TEST_CASE("at the limit the connection that has waited longest gives way") {
    server_limits limit;
    limit.connections = 2;
    served s(limit);
    const auto port = s.running->metrics_port();
    raw_connection first(port);
    first.send("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(first.read_some().rfind("HTTP/1.1 200", 0) == 0);
    raw_connection second(port);
    second.send("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(second.read_some().rfind("HTTP/1.1 200", 0) == 0);
    CHECK(raw_tcp(port, "GET /livez HTTP/1.0\r\n\r\n").rfind("HTTP/1.0 200", 0) == 0);
    CHECK(first.read_some().empty());
    CHECK(s.running->connections_refused() == 1);
}

TEST_CASE("clients that never end their request keep nobody out at either door") {
    server_limits limit;
    limit.connections = 8;
    served s(limit);
    const auto port = s.running->metrics_port();
    std::vector<std::unique_ptr<raw_connection>> slow;
    for (int i = 0; i < 40; ++i) {
        slow.push_back(std::make_unique<raw_connection>(port));
        slow.back()->send("GET /metrics HTTP/1.1\r\nX: ");
    }
    CHECK(raw_tcp(port, "GET /livez HTTP/1.0\r\n\r\n").rfind("HTTP/1.0 200", 0) == 0);
    CHECK(s.ask("GET", "/api/v1/status").status == 200);
}

TEST_CASE("a verb that takes long keeps no probe waiting") {
    server_limits limit;
    limit.workers = 1;
    served s(limit);
    std::promise<void> go_on;
    s.what.block = go_on.get_future();
    std::thread slow([&] { s.ask("GET", "/api/v1/block"); });
    const auto patience = std::chrono::steady_clock::now() + 10s;
    while (s.what.blocked == 0 && std::chrono::steady_clock::now() < patience)
        std::this_thread::yield();
    const auto answer = raw_tcp(s.running->metrics_port(), "GET /livez HTTP/1.0\r\n\r\n");
    go_on.set_value();
    slow.join();
    CHECK(s.what.blocked == 1);
    CHECK(answer.rfind("HTTP/1.0 200", 0) == 0);
}

TEST_CASE("a silent client is dropped after the idle time") {
    server_limits limit;
    limit.idle_timeout = 100ms;
    served s(limit);
    raw_connection silent(s.running->metrics_port());
    silent.send("GET /liv");
    CHECK(silent.read_some().empty());  // closed by the server
}

TEST_CASE("no hotlane: the client says so") {
    const auto got = call("/nonexistent/admin.sock", "GET", "/api/v1/status", {}, 1s);
    REQUIRE_FALSE(got.has_value());
    CHECK(got.error().what.find("hotlane is not running") != std::string::npos);
}

TEST_CASE("a stale socket file is replaced, a live one and a foreign file are not") {
    served s;
    fake_service other;
    server_options options;
    options.unix_path = s.path;
    auto second = server::start(options, other);
    REQUIRE_FALSE(second.has_value());
    CHECK(second.error().what.find("another process serves") != std::string::npos);
    CHECK(s.ask("GET", "/livez").status == 200);

    const auto file = (s.folder / "plain").string();
    std::ofstream(file) << "keep me";
    options.unix_path = file;
    REQUIRE_FALSE(server::start(options, other).has_value());
    CHECK(std::filesystem::exists(file));

    const auto stale = (s.folder / "stale.sock").string();
    leave_stale_socket(stale);
    options.unix_path = stale;
    CHECK(server::start(options, other).has_value());
}

TEST_CASE("targets") {
    CHECK_FALSE(parse_target("").has_value());
    CHECK_FALSE(parse_target("x").has_value());
    CHECK_FALSE(parse_target("/a%2").has_value());
    CHECK_FALSE(parse_target("/a?x=%g0").has_value());
    CHECK(parse_target("//a///b/")->segments == std::vector<std::string>{"a", "b"});
    CHECK(parse_target("/" + encode_segment("a/b ?%"))->segments ==
          std::vector<std::string>{"a/b ?%"});
}
