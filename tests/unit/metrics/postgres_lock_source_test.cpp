// The lock source against a script, and against a PostgreSQL of its own where one is installed.
#include <libpq-fe.h>
#include <pwd.h>
#include <sys/stat.h>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>

#include "fake_server.hpp"
#include "metrics/source.hpp"

using namespace hotlane;
using namespace hotlane::metrics;
using namespace hotlane::test;
using std::chrono::milliseconds;

namespace {

policy::time_point clock_now() {
    return {};
}
constexpr milliseconds budget{5'000};

std::string columns(std::size_t n) {
    std::string body{static_cast<char>(0), static_cast<char>(n)};
    for (std::size_t i = 0; i < n; ++i) {
        body += std::string("c\0\0\0\0\0\0\0", 8) + big_endian(25) +
                std::string("\xff\xff\xff\xff\xff\xff\0\0", 8);
    }
    return frame('T', body);
}
std::string values(const std::vector<std::string>& row) {
    std::string body{static_cast<char>(0), static_cast<char>(row.size())};
    for (const auto& v : row)
        body += big_endian(static_cast<std::uint32_t>(v.size())) + v;
    return frame('D', body);
}
std::string totals(const std::string& commits, const std::string& may_see) {
    return columns(3) + values({commits, "5", may_see}) + complete();
}
std::string waits(const std::vector<std::vector<std::string>>& rows) {
    auto out = columns(4);
    for (const auto& r : rows)
        out += values(r);
    return out + complete();
}

constexpr auto bin = "/usr/lib/postgresql/15/bin";

// A server in a temporary folder, on a unix socket only; runs as `postgres` when we are root.
class own_postgres {
  public:
    own_postgres() {
        struct stat st {};
        if (stat((std::string{bin} + "/initdb").c_str(), &st) != 0) return;
        char name[] = "/tmp/hotlane-pg-XXXXXX";
        if (mkdtemp(name) == nullptr) return;
        folder_ = name;
        if (getuid() == 0) {
            const auto* who = getpwnam("postgres");
            if (who == nullptr || chown(name, who->pw_uid, who->pw_gid) != 0) return;
            as_ = "setpriv --reuid=postgres --regid=postgres --clear-groups ";
        }
        up_ = run("initdb -D " + folder_ + "/data -A trust -U postgres -N") &&
              run("pg_ctl -D " + folder_ + "/data -w -l " + folder_ + "/log -o '-F -k " + folder_ +
                  " -c listen_addresses= -p 5432' start");
    }
    ~own_postgres() {
        if (up_) run("pg_ctl -D " + folder_ + "/data -w -m immediate stop");
        if (!folder_.empty()) (void)!std::system(("rm -rf " + folder_).c_str());
    }
    own_postgres(const own_postgres&) = delete;
    own_postgres& operator=(const own_postgres&) = delete;

    [[nodiscard]] bool up() const { return up_; }
    [[nodiscard]] source_target target(const std::string& user) const {
        return {folder_, 5432, user, "postgres", ""};
    }
    [[nodiscard]] std::unique_ptr<PGconn, decltype(&PQfinish)> connect() const {
        const auto info = "host=" + folder_ + " user=postgres dbname=postgres";
        return {PQconnectdb(info.c_str()), &PQfinish};
    }

  private:
    bool run(const std::string& command) const {
        const auto line = "cd / && " + as_ + bin + "/" + command + " >/dev/null 2>&1";
        return std::system(line.c_str()) == 0;
    }
    std::string folder_;
    std::string as_;
    bool up_{false};
};

bool exec(PGconn* c, const char* sql) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> r{PQexec(c, sql), &PQclear};
    return PQresultStatus(r.get()) == PGRES_COMMAND_OK ||
           PQresultStatus(r.get()) == PGRES_TUPLES_OK;
}

}  // namespace

TEST_CASE("a statement that waits is a handoff, once, and its waiting adds up") {
    // pid, query_start, waitstart, waited: the statement waits for the tuple first, then for the
    // transaction (a new waitstart); then it is gone and another one waits.
    const std::vector<std::string> script{totals("100", "t"),
                                          waits({}),
                                          totals("101", "t"),
                                          waits({{"7", "1", "10", "500"}}),
                                          totals("102", "t"),
                                          waits({{"7", "1", "10", "800"}}),
                                          totals("103", "t"),
                                          waits({{"7", "1", "20", "50"}}),
                                          totals("104", "t"),
                                          waits({{"7", "2", "30", "5"}})};
    fake_server server{[&](int n) { return script.at(static_cast<std::size_t>(n)); }};
    auto s = make_postgres_lock_source({"127.0.0.1", server.port(), "u", "d", ""});
    const std::vector<std::pair<unsigned, unsigned>> expected{
        {0, 0}, {1, 500}, {1, 800}, {1, 850}, {2, 855}};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto got = s->read(clock_now, budget);
        INFO(i);
        REQUIRE(got);
        CHECK(got->handoffs == expected[i].first);
        CHECK(got->wait_us == expected[i].second);
        CHECK(got->commits == 100 + i);
        CHECK(got->acquires == 105 + i);
        CHECK_FALSE(got->committed_lsn);
    }
}

TEST_CASE("who may not see waits does not see zero waits") {
    fake_server server{[](int n) { return n == 0 ? totals("1", "f") : columns(3) + complete(); }};
    auto s = make_postgres_lock_source({"127.0.0.1", server.port(), "u", "d", ""});
    const auto blind = s->read(clock_now, budget);
    REQUIRE(blind);
    CHECK(blind->commits == 1U);
    CHECK_FALSE(blind->handoffs);
    CHECK_FALSE(blind->wait_us);
    const auto empty = s->read(clock_now, budget);
    REQUIRE(empty);
    CHECK_FALSE(empty->commits);
    CHECK_FALSE(empty->acquires);
}

TEST_CASE("where pg_wait_sampling is installed its profile counts the waits") {
    const auto with = [](const std::string& period) {
        return columns(5) + values({"100", "5", "t", "t", period}) + complete();
    };
    const auto profile = columns(1) + values({"42"}) + complete();
    fake_server server{[&](int n) {
        if (n % 2 == 1) return profile;
        return with(n == 0 ? "10ms" : "25");
    }};
    auto s = make_postgres_lock_source({"127.0.0.1", server.port(), "u", "d", ""});
    const auto first = s->read(clock_now, budget);
    REQUIRE(first);
    CHECK(first->handoffs == 42U);
    CHECK(first->wait_us == 420'000U);
    const auto second = s->read(clock_now, budget);
    REQUIRE(second);
    CHECK(second->wait_us == 1'050'000U);
}

TEST_CASE("a real PostgreSQL's row lock waits are seen") {
    const own_postgres server;
    if (!server.up()) {
        WARN("no PostgreSQL 15 to start");
        return;
    }
    auto a = server.connect();
    auto b = server.connect();
    REQUIRE(
        exec(a.get(), "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0)"));
    REQUIRE(exec(a.get(), "CREATE ROLE weak LOGIN"));
    auto s = make_postgres_lock_source(server.target("postgres"));
    const auto before = s->read(clock_now, budget);
    INFO((before ? std::string{} : before.error().detail));
    REQUIRE(before);
    CHECK(before->handoffs == 0U);
    REQUIRE(exec(a.get(), "BEGIN; UPDATE t SET n = n + 1 WHERE id = 1"));
    REQUIRE(PQsendQuery(b.get(), "UPDATE t SET n = n + 1 WHERE id = 1") == 1);
    const auto until = std::chrono::steady_clock::now() + milliseconds{20'000};
    auto seen = before;
    while (seen && seen->handoffs == 0U && std::chrono::steady_clock::now() < until) {
        seen = s->read(clock_now, budget);
    }
    REQUIRE(seen);
    CHECK(seen->handoffs == 1U);
    const auto later = s->read(clock_now, budget);
    REQUIRE(later);
    CHECK(later->handoffs == 1U);
    CHECK(*later->wait_us > *seen->wait_us);
    REQUIRE(exec(a.get(), "COMMIT"));
    while (auto* r = PQgetResult(b.get()))
        PQclear(r);
    const auto after = s->read(clock_now, budget);
    REQUIRE(after);
    CHECK(after->handoffs == 1U);
    auto weak = make_postgres_lock_source(server.target("weak"));
    const auto blind = weak->read(clock_now, budget);
    REQUIRE(blind);
    CHECK(blind->commits);
    CHECK_FALSE(blind->handoffs);
}
