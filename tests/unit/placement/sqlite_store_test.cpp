#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "store_conformance.hpp"

using namespace hotlane;
using namespace hotlane::placement;
namespace fs = std::filesystem;

namespace {

struct folder {
    folder() {
        std::string name = (fs::temp_directory_path() / "store-XXXXXX").string();
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~folder() { fs::remove_all(path); }
    [[nodiscard]] std::string file() const { return path / "state.db"; }
    fs::path path;
};

std::unique_ptr<fleet_store> open_or_fail(const std::string& file) {
    auto opened = open_sqlite_store(file);
    if (!opened) FAIL(opened.error().what);
    return std::move(*opened);
}

std::string refusal(const std::string& file) {
    const auto opened = open_sqlite_store(file);
    REQUIRE_FALSE(opened.has_value());
    return opened.error().what;
}

void run_sql(const std::string& file, const char* sql) {
    sqlite3* db = nullptr;
    REQUIRE(sqlite3_open(file.c_str(), &db) == SQLITE_OK);
    REQUIRE(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(db);
}

move_record move_in(const std::string& id, const std::string& phase) {
    move_record made;
    made.id = id;
    made.tool = "a";
    made.phase = phase;
    made.plan = nlohmann::json::object();
    return made;
}

}  // namespace

TEST_CASE("sqlite: the store does what every store must") {
    const folder in;
    store_back_end back_end{[&in] {
        auto made = open_or_fail(in.file());
        lead(*made, "test");
        return made;
    }};
    check_all(back_end);
}

TEST_CASE("sqlite: a second opener is refused at once, in this process and in another") {
    const folder in;
    auto first = open_or_fail(in.file());
    REQUIRE(refusal(in.file()).find("another process") != std::string::npos);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(open_sqlite_store(in.file()).has_value() ? 1 : 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 0);
    first.reset();
    REQUIRE(open_sqlite_store(in.file()).has_value());
}

TEST_CASE("sqlite: a file that was deleted or replaced takes no more writes") {
    const folder in;
    auto there = open_or_fail(in.file());
    lead(*there, "test");
    REQUIRE(there->put_document("kind", "name", {{"n", 1}}));
    const auto aside = in.file() + ".aside";
    REQUIRE(::rename(in.file().c_str(), aside.c_str()) == 0);
    const auto refused = there->put_document("kind", "name", {{"n", 2}});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what.find("deleted or replaced") != std::string::npos);
    REQUIRE_FALSE(there->put_placement({"shop", hotlane::policy::home_kind::engine, 7, {}, {}}));
    REQUIRE(::rename(aside.c_str(), in.file().c_str()) == 0);
    CHECK(there->put_document("kind", "name", {{"n", 3}}));
}

TEST_CASE("sqlite: the file is readable by its owner only") {
    const folder in;
    const auto there = open_or_fail(in.file());
    struct stat facts {};
    REQUIRE(::stat(in.file().c_str(), &facts) == 0);
    REQUIRE((facts.st_mode & 0777) == 0600);
}

TEST_CASE("sqlite: what is no state file is refused and left as it was") {
    const folder in;
    SECTION("another program's database") {
        run_sql(in.file(), "CREATE TABLE theirs (n)");
        REQUIRE(refusal(in.file()).find("not a hotlane state file") != std::string::npos);
    }
    SECTION("no database at all") {
        std::ofstream(in.file()) << std::string(8'192, 'x');
        REQUIRE(refusal(in.file()).find("not a hotlane state file") != std::string::npos);
    }
    SECTION("a newer format") {
        open_or_fail(in.file()).reset();
        run_sql(in.file(), "PRAGMA user_version = 99");
        REQUIRE(refusal(in.file()).find("newer") != std::string::npos);
    }
    SECTION("a missing folder") {
        REQUIRE_FALSE(refusal(in.path / "nowhere" / "state.db").empty());
    }
}

TEST_CASE("sqlite: a damaged file is refused with a clear error") {
    const folder in;
    {
        auto there = open_or_fail(in.file());
        for (int i = 0; i < 200; ++i)
            REQUIRE(there->add_ddl("a", std::string(300, 'd')));
    }
    const auto size = fs::file_size(in.file());
    REQUIRE(size > 32'768);
    {
        std::fstream file(in.file(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(4'096);
        file << std::string(16'384, '\x5a');
    }
    REQUIRE(refusal(in.file()).find("damaged") != std::string::npos);
}

TEST_CASE("sqlite: put_move is durable when it returns, even if the process is killed") {
    const folder in;
    open_or_fail(in.file()).reset();
    for (int round = 0; round < 5; ++round) {
        int pipe_ends[2];
        REQUIRE(::pipe(pipe_ends) == 0);
        const pid_t child = ::fork();
        if (child == 0) {
            auto opened = open_sqlite_store(in.file());
            for (int i = 0; opened && i < 10'000; ++i) {
                const auto number = std::to_string(i);
                if (!(*opened)->put_move(move_in("m" + std::to_string(round), number))) break;
                if (::write(pipe_ends[1], &i, sizeof i) != sizeof i) break;
            }
            ::_exit(1);
        }
        ::close(pipe_ends[1]);
        int acknowledged = -1;
        for (int n = 0; n < 20 + round; ++n) {
            int i = 0;
            REQUIRE(::read(pipe_ends[0], &i, sizeof i) == sizeof i);
            acknowledged = i;
        }
        ::kill(child, SIGKILL);
        int status = 0;
        ::waitpid(child, &status, 0);
        int late = 0;
        while (::read(pipe_ends[0], &late, sizeof late) == sizeof late)
            acknowledged = late;
        ::close(pipe_ends[0]);
        auto there = open_or_fail(in.file());
        const auto read = there->move("m" + std::to_string(round)).value();
        REQUIRE(read.has_value());
        REQUIRE(std::stoi(read->phase) >= acknowledged);
    }
}

TEST_CASE("sqlite: a full disk is an error and changes nothing") {
    const folder in;
    {
        auto there = open_or_fail(in.file());
        REQUIRE(there->put_move(move_in("m1", "stage")));
    }
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGXFSZ, SIG_IGN);
        auto opened = open_sqlite_store(in.file());
        if (!opened) ::_exit(2);
        const rlimit small{128 * 1024, 128 * 1024};
        ::setrlimit(RLIMIT_FSIZE, &small);
        auto big = move_in("m1", "fence");
        big.plan["filler"] = std::string(1'000'000, 'f');
        if ((*opened)->put_move(big)) ::_exit(3);
        const auto read = (*opened)->move("m1");
        ::_exit(read && *read && (*read)->phase == "stage" ? 0 : 4);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 0);
    REQUIRE(open_or_fail(in.file())->move("m1").value()->phase == "stage");
}
