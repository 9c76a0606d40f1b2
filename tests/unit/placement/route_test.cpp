#include "router/placement/route.hpp"

#include <catch2/catch.hpp>

using namespace hotlane;
using namespace hotlane::placement;

namespace {

config::tool tool_named(std::string name, std::string database, std::string user = {}) {
    config::tool made;
    made.name = std::move(name);
    made.match.database = std::move(database);
    made.match.user = std::move(user);
    made.engine.at.host = "127.0.0.1";
    return made;
}

}  // namespace

TEST_CASE("globs match whole texts") {
    REQUIRE(glob_match("", ""));
    REQUIRE(glob_match("*", ""));
    REQUIRE(glob_match("app_*", "app_1"));
    REQUIRE(glob_match("a?c", "abc"));
    REQUIRE(glob_match("*a*b*", "xxaxxbxx"));
    REQUIRE(glob_match("*ab", "aab"));
    REQUIRE_FALSE(glob_match("app_", "app_1"));
    REQUIRE_FALSE(glob_match("?", ""));
    REQUIRE_FALSE(glob_match("", "a"));
    REQUIRE_FALSE(glob_match("*ab", "aba"));
}

TEST_CASE("a hostile glob takes no exponential time") {
    std::string pattern;
    for (int i = 0; i < 30; ++i)
        pattern += "*a";
    REQUIRE_FALSE(glob_match(pattern + "b", std::string(20'000, 'a')));
}

TEST_CASE("the first rule that matches wins, and no rule means no tool") {
    config::model model;
    model.tools = {tool_named("one", "shop", "alice"), tool_named("two", "sho*")};
    tool_table table(model);
    REQUIRE(table.resolve({"alice", "shop", ""})->name == "one");
    REQUIRE(table.resolve({"bob", "shop", ""})->name == "two");
    REQUIRE(table.resolve({"bob", "bank", ""}) == nullptr);
    REQUIRE(table.resolve({"shop", "", ""})->name == "two");  // database defaults to the user
    REQUIRE(table.resolve({"bob", "shop", ""}) == table.find("two"));
    REQUIRE(table.all().size() == 2);
}

TEST_CASE("a new tool is not served before it is placed, and each swap is a new version") {
    config::model model;
    model.tools = {tool_named("one", "shop")};
    tool_table table(model);
    const auto entry = table.find("one");
    REQUIRE_FALSE(entry->current()->served);
    REQUIRE_FALSE(entry->current()->reason.empty());
    const auto version = entry->version();
    const auto at = home_of(entry->settings, model, policy::home_kind::engine);
    REQUIRE(at.has_value());
    entry->place(*at, 7);
    REQUIRE(entry->version() > version);
    REQUIRE(entry->current()->served);
    REQUIRE(entry->current()->epoch == 7);
    const auto generation = entry->current()->generation;
    entry->close("for a test");
    REQUIRE_FALSE(entry->current()->served);
    REQUIRE(entry->current()->epoch == 7);
    REQUIRE(entry->current()->generation > generation);
}

TEST_CASE("a PostgreSQL home takes the server's address, the role and the schema") {
    config::model model;
    auto settings = tool_named("orders", "orders");
    REQUIRE_FALSE(home_of(settings, model, policy::home_kind::postgres));
    settings.postgres = config::postgres_home{.server = "main", .schema = "app", .role = "owner"};
    REQUIRE_FALSE(home_of(settings, model, policy::home_kind::postgres));
    model.postgres["main"].at = {"10.0.0.1", 6543};
    const auto at = home_of(settings, model, policy::home_kind::postgres);
    REQUIRE(at.has_value());
    REQUIRE(at->at.port == 6543);
    REQUIRE(at->database == "orders");
    REQUIRE(at->user == "owner");
    REQUIRE(at->search_path == "app");
}

TEST_CASE("a template makes one tool for each name, once") {
    config::model model;
    auto pattern = tool_named("{database}", "app_*");
    pattern.engine.at.host = "{database}.engines.internal";
    pattern.engine.database = "{database}";
    pattern.postgres = config::postgres_home{.server = "main", .database = "{database}"};
    model.tools = {pattern};
    tool_table table(model);
    int made = 0;
    table.on_new = [&made](tool_entry& entry) {
        ++made;
        REQUIRE(entry.name == "app_1");
    };
    REQUIRE(table.all().empty());
    const auto entry = table.resolve({"u", "app_1", ""});
    REQUIRE(entry != nullptr);
    REQUIRE(entry->settings.engine.at.host == "app_1.engines.internal");
    REQUIRE(entry->settings.postgres->database == "app_1");
    REQUIRE(table.resolve({"v", "app_1", ""}) == entry);
    REQUIRE(made == 1);
}

TEST_CASE("a client cannot write what it likes into a name or an address") {
    config::model model;
    auto pattern = tool_named("{database}", "*");
    pattern.engine.at.host = "/run/engines/{database}";
    model.tools = {pattern};
    tool_table table(model);
    for (const std::string bad :
         {"..", ".", "a/b", "../x", "a b", "a'b", "{user}", "caf\xc3\xa9", "a:1", "a\n"}) {
        INFO(bad);
        REQUIRE(table.resolve({"u", bad, ""}) == nullptr);
    }
    REQUIRE(table.resolve({"u", std::string(64, 'a'), ""}) == nullptr);
    REQUIRE(table.resolve({"u", std::string(63, 'a'), ""}) != nullptr);
    REQUIRE(table.resolve({"u", std::string("a\0b", 3), ""}) == nullptr);
    REQUIRE(table.all().size() == 1);
}

TEST_CASE("a template never reaches into a tool that another rule or other homes own") {
    config::model model;
    auto pattern = tool_named("{database}", "*");
    pattern.engine.user = "{user}";
    model.tools = {tool_named("bank", "bank", "teller"), pattern};
    tool_table table(model);
    REQUIRE(table.resolve({"teller", "bank", ""})->name == "bank");
    REQUIRE(table.resolve({"thief", "bank", ""}) == nullptr);
    REQUIRE(table.resolve({"alice", "shop", ""}) != nullptr);
    REQUIRE(table.resolve({"bob", "shop", ""}) == nullptr);  // same name, other engine user
}

TEST_CASE("template tools are bounded and the bound is counted") {
    config::model model;
    model.tools = {tool_named("{database}", "*")};
    tool_table table(model, 2);
    REQUIRE(table.resolve({"u", "a", ""}) != nullptr);
    REQUIRE(table.resolve({"u", "b", ""}) != nullptr);
    REQUIRE(table.resolve({"u", "c", ""}) == nullptr);
    REQUIRE(table.resolve({"u", "a", ""}) != nullptr);
    REQUIRE(table.template_limit_hits() == 1);
}

TEST_CASE("observations drop samples when full, and DDL only at its own bound") {
    observations seen(2, 3);
    const auto push = [&seen](observation::kind what) { seen.push({what, "", "x", {}}); };
    for (int i = 0; i < 3; ++i)
        push(observation::kind::write);
    for (int i = 0; i < 4; ++i)
        push(observation::kind::ddl);
    REQUIRE(seen.dropped() == 1);
    REQUIRE(seen.ddl_lost() == 1);
    const auto taken = seen.take();
    REQUIRE(taken.size() == 5);
    REQUIRE(taken[2].what == observation::kind::ddl);
    push(observation::kind::ddl);
    push(observation::kind::conflict);
    REQUIRE(seen.take().size() == 2);
}

TEST_CASE("DDL counts as unkept until it is stored; what was lost always does") {
    observations seen(2, 1);
    REQUIRE(seen.ddl_unkept() == 0);
    for (int i = 0; i < 2; ++i)
        seen.push({observation::kind::ddl, "", "x", {}});
    seen.push({observation::kind::write, "", "x", {}});
    REQUIRE(seen.take().size() == 2);
    REQUIRE(seen.ddl_unkept() == 2);
    seen.ddl_kept();
    REQUIRE(seen.ddl_unkept() == 1);
}

TEST_CASE("a client is told of its DDL once all up to it is kept, or none can be any more") {
    observations seen(2, 2);
    const auto ddl = [&] { return seen.push({observation::kind::ddl, "", "x", {}}); };
    CHECK(seen.push({observation::kind::write, "", "x", {}}) == 0);
    const auto first = ddl(), second = ddl();
    CHECK(first < second);
    CHECK_FALSE(seen.is_kept(first));
    seen.ddl_kept();
    CHECK(seen.is_kept(first));
    CHECK_FALSE(seen.is_kept(second));
    seen.ddl_kept();
    CHECK(seen.is_kept(second));
    for (int i = 0; i < 3; ++i)
        ddl();  // nobody takes them: the last is lost
    CHECK(seen.is_kept(ddl()));
}

TEST_CASE("a renewed password is for the links to come and moves nobody") {
    tool_entry entry;
    home at;
    at.kind = policy::home_kind::postgres;
    at.password = "old";
    entry.place(at, 7);
    const auto before = entry.current();
    const auto version = entry.version();
    entry.renew_password(policy::home_kind::engine, "new");  // it lives elsewhere by now
    entry.renew_password(policy::home_kind::postgres, "old");
    REQUIRE(entry.version() == version);
    entry.renew_password(policy::home_kind::postgres, "new");
    REQUIRE(entry.version() > version);
    REQUIRE(entry.current()->at.password == "new");
    REQUIRE(entry.current()->generation == before->generation);
    REQUIRE(entry.current()->epoch == 7);
    REQUIRE(before->at.password == "old");
}
