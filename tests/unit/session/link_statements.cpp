// Prepared statements of clients that share links: named by us there, prepared where they lack.
#include <catch2/catch.hpp>

#include "tests/unit/session/script.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;

namespace {

link_memory fresh() {
    link_memory made;
    made.kind = home_kind::postgres;
    made.generation = 1;
    made.begins_at = level::read_committed;
    made.key = {77, "true"};
    made.status = std::make_shared<const pairs>(pairs{{"server_version", "15.0"}});
    return made;
}

struct pooled : script {
    explicit pooled(std::size_t statements = 500)
        : script(home_kind::postgres, {}, true, pooling::transaction) {
        env().facts.statements_per_link = statements;
        env().facts.isolation = isolation_rule::read_committed;
        env().known_greeting = fresh().status;
        client(f::startup());
        to_client();
        env().free = &link;
    }
    link_memory link = fresh();
    link_memory other = fresh();

    void prepare(std::string_view name, std::string_view sql, std::vector<std::uint32_t> columns) {
        client(f::parse(name, sql) + f::describe(name) + f::sync());
        home(b::closed() + b::parsed() + b::parameters({20}) + b::row_description(columns) +
             b::ready());
        to_client();
        to_link();
    }
    void use_other() { env().free = &other; }
};

const std::string run = f::bind("", "a") + f::execute() + f::sync();
const std::string result = b::bound() + b::row("1") + b::complete("SELECT 1") + b::ready();

std::vector<std::string> names_sent(std::string_view bytes) {
    std::vector<std::string> out;
    while (!bytes.empty()) {
        const auto frame = wire::scan_frame(bytes);
        if (frame.header.tag == 'P')
            out.push_back("P " + std::string(wire::decode_parse(frame.body)->statement));
        if (frame.header.tag == 'B')
            out.push_back("B " + std::string(wire::decode_bind_head(frame.body)->statement));
        bytes.remove_prefix(frame.header.total_size());
    }
    return out;
}

}  // namespace

TEST_CASE("two clients use one name for two texts on one link") {
    pooled one;
    one.prepare("a", "SELECT 11", {23});
    pooled two;
    two.env().free = &one.link;
    two.client(f::parse("a", "SELECT 22") + run);
    const auto sent = names_sent(two.to_link());
    REQUIRE(sent.size() == 2);
    REQUIRE(sent[0].substr(2) == sent[1].substr(2));
    one.env().free = &one.link;
    one.client(run);
    const auto again = names_sent(one.to_link());
    REQUIRE(again.size() == 1);  // the link has it already
    REQUIRE(again[0] != sent[1]);
}

TEST_CASE("a link that lacks a statement gets it, and the client sees only its own replies") {
    pooled s;
    s.client(f::parse("a", "SELECT 1") + f::sync());
    s.home(b::closed() + b::parsed() + b::ready());
    REQUIRE(tags(s.to_client()) == "1ZI");
    s.to_link();
    s.use_other();
    s.client(run);
    REQUIRE(sent_tags(s.to_link()) == "CPBES");
    s.home(b::closed() + b::parsed() + result);
    REQUIRE(tags(s.to_client()) == "2DCZI");
}

TEST_CASE("what was told of a result is compared before the statement runs elsewhere") {
    pooled s;
    s.prepare("a", "SELECT sum(n) FROM t", {20});
    s.use_other();
    s.client(run);
    REQUIRE(sent_tags(s.to_link()) == "CPDH");
    SECTION("the same") {
        s.home(b::closed() + b::parsed() + b::parameters({20}) + b::row_description({20}));
        REQUIRE(sent_tags(s.to_link()) == "BES");
        s.home(result);
        REQUIRE(tags(s.to_client()) == "2DCZI");
    }
    SECTION("another") {
        s.home(b::closed() + b::parsed() + b::parameters({20}) + b::row_description({1700}));
        REQUIRE(sent_tags(s.to_link()) == "BES");
        s.home(b::error("26000", "no such statement") + b::ready());
        REQUIRE(tags(s.to_client()) == "E(0A000)ZI");
    }
    SECTION("refused there") {
        s.home(b::closed() + b::error("42P01", "no such table"));
        REQUIRE(tags(s.to_client()) == "E(42P01)");
        s.home(b::ready());
        REQUIRE(tags(s.to_client()) == "ZI");
    }
}

TEST_CASE("a name that is taken is refused as the home would") {
    pooled s;
    s.client(f::parse("a", "SELECT 1") + f::parse("a", "SELECT 2") + f::sync());
    s.home(b::closed() + b::parsed());
    SECTION("if its text is good") {
        s.home(b::closed() + b::parsed() + b::error("26000", "no such statement") + b::ready());
        REQUIRE(tags(s.to_client()) == "1E(42P05)ZI");
    }
    SECTION("else for its text") {
        s.home(b::closed() + b::error("42601", "syntax") + b::ready());
        REQUIRE(tags(s.to_client()) == "1E(42601)ZI");
    }
}

TEST_CASE("a Close answers, and leaves the link its statement") {
    pooled s;
    s.prepare("a", "SELECT 1", {23});
    s.env().free = &s.link;
    s.client(f::close("a") + f::sync());
    s.home(b::closed() + b::ready());
    REQUIRE(tags(s.to_client()) == "3ZI");
    REQUIRE(s.link.statements.size() == 1);
    s.to_link();
    s.env().free = &s.link;
    s.client(run);
    REQUIRE(names_sent(s.to_link()) == std::vector<std::string>{"B a"});  // the home knows none
}

TEST_CASE("nobody reaches a statement that another has left") {
    pooled one;
    one.client(f::parse("", "SELECT 11") + f::sync());
    one.home(b::parsed() + b::ready());
    pooled two;
    two.env().free = &one.link;
    two.client(f::bind("", "") + f::execute() + f::sync());
    REQUIRE(sent_tags(two.to_link()) == "CBES");
    pooled three;
    three.env().free = &three.link;
    three.client(f::bind("", "hotlane_1") + f::sync());
    REQUIRE(names_sent(three.to_link()) != std::vector<std::string>{"B hotlane_1"});
}

TEST_CASE("the oldest statement makes room, never one of this transaction") {
    pooled s(2);
    for (const std::string name : {"a", "b"}) {
        s.env().free = &s.link;
        s.prepare(name, "SELECT '" + name + "'", {25});
    }
    s.env().free = &s.link;
    s.client(f::parse("c", "SELECT 'c'") + f::sync());
    REQUIRE(sent_tags(s.to_link()) == "CCPS");
    REQUIRE(s.link.statements.size() == 2);
    s.home(b::closed() + b::closed() + b::parsed() + b::ready());
    REQUIRE(tags(s.to_client()) == "1ZI");
    s.env().free = &s.link;
    s.client(f::parse("d", "SELECT 'd'") + f::parse("e", "SELECT 'e'") +
             f::parse("f", "SELECT 'f'"));
    REQUIRE(s.link.statements.size() == 3);  // two of them went, three are in use
}

TEST_CASE("DEALLOCATE of a statement prepared by message finds it") {
    pooled s;
    s.prepare("a", "SELECT 1", {23});
    s.env().free = &s.link;
    s.client(f::query("DEALLOCATE a"));
    const auto sent = s.to_link();
    REQUIRE(sent_tags(sent) == "CPQ");
    REQUIRE(sent.find("DEALLOCATE hotlane_none") != std::string::npos);
    s.home(b::closed() + b::parsed() + b::complete("DEALLOCATE") + b::ready());
    REQUIRE(tags(s.to_client()) == "CZI");
    REQUIRE(s.link.statements.size() == 1);  // others may want it
    s.env().free = &s.link;
    s.client(run);
    REQUIRE(names_sent(s.to_link()) == std::vector<std::string>{"B a"});
}

TEST_CASE("DEALLOCATE ALL empties the link and the client") {
    pooled s;
    s.prepare("a", "SELECT 1", {23});
    s.env().free = &s.link;
    s.client(f::query("DEALLOCATE ALL"));
    s.home(b::complete("DEALLOCATE ALL") + b::ready());
    REQUIRE(s.link.statements.size() == 0);
    s.env().free = &s.link;
    s.to_link();
    s.client(run);
    REQUIRE(names_sent(s.to_link()) == std::vector<std::string>{"B a"});
}

TEST_CASE("texts are interned, and forgotten with the last who has them") {
    const auto before = interned_count();
    {
        const auto one = intern("SELECT interned", {});
        REQUIRE(intern("SELECT interned", {}) == one);
        const std::vector<std::uint32_t> types{23};
        REQUIRE(intern("SELECT interned", types) != one);
        REQUIRE(interned_count() == before + 1);
    }
    REQUIRE(interned_count() == before);
}
