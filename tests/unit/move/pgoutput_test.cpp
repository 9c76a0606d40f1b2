#include <catch2/catch.hpp>

#include "router/move/pgoutput.hpp"
#include "stream.hpp"

using namespace hotlane::move;
using namespace stream;

TEST_CASE("each kind of message is read") {
    const auto begin = pgoutput::decode(begins(77));
    REQUIRE(begin);
    CHECK(std::get<pgoutput::begin>(*begin).xid == 77);
    CHECK(std::get<pgoutput::begin>(*begin).commit_lsn == 5);

    const auto commit = pgoutput::decode(commits());
    REQUIRE(commit);
    CHECK(std::get<pgoutput::commit>(*commit).end_lsn == 6);

    const auto bytes = describes(9, "t", {"id", "v"});
    const auto relation = pgoutput::decode(bytes);
    REQUIRE(relation);
    const auto& r = std::get<pgoutput::relation>(*relation);
    CHECK(r.oid == 9);
    CHECK(r.schema == "public");
    CHECK(r.name == "t");
    CHECK(r.identity == 'd');
    REQUIRE(r.columns.size() == 2);
    CHECK(r.columns[0].in_identity);
    CHECK(r.columns[1].name == "v");
    CHECK(r.columns[1].type == 25);

    const auto said = emits("hotlane", "m/1");
    const auto message = pgoutput::decode(said);
    REQUIRE(message);
    CHECK(std::get<pgoutput::message>(*message).transactional);
    CHECK(std::get<pgoutput::message>(*message).prefix == "hotlane");
    CHECK(std::get<pgoutput::message>(*message).content == "m/1");

    const auto truncated = pgoutput::decode(truncates({3, 4}));
    REQUIRE(truncated);
    CHECK(std::get<pgoutput::truncate>(*truncated).relations == std::vector<std::uint32_t>{3, 4});

    CHECK(std::holds_alternative<pgoutput::aside>(*pgoutput::decode("O" + u64(1) + text("o"))));
    CHECK(std::holds_alternative<pgoutput::aside>(
        *pgoutput::decode("Y" + u32(1) + text("public") + text("mood"))));
}

TEST_CASE("rows of changes are read, old and new") {
    const auto inserted = inserts(9, {"5", "x"});
    const auto insert = pgoutput::decode(inserted);
    REQUIRE(insert);
    const auto& i = std::get<pgoutput::change>(*insert);
    CHECK(i.what == pgoutput::change::kind::inserted);
    CHECK_FALSE(i.before);
    REQUIRE(i.after);
    CHECK((*i.after)[1].bytes == "x");

    const auto updated = updates(9, row_of({"5", null}), {"6", unchanged});
    const auto update = pgoutput::decode(updated);
    REQUIRE(update);
    const auto& u = std::get<pgoutput::change>(*update);
    CHECK(u.what == pgoutput::change::kind::updated);
    REQUIRE(u.before);
    CHECK((*u.before)[0].bytes == "5");
    CHECK((*u.before)[1].what == pgoutput::field::kind::null);
    CHECK((*u.after)[1].what == pgoutput::field::kind::unchanged);

    const auto deleted = deletes(9, {"5"});
    const auto gone = pgoutput::decode(deleted);
    REQUIRE(gone);
    CHECK(std::get<pgoutput::change>(*gone).before);
    CHECK_FALSE(std::get<pgoutput::change>(*gone).after);
}

TEST_CASE("a message that is cut off anywhere, or too long, is an error") {
    for (const auto& whole : {begins(1),
                              commits(),
                              describes(9, "t", {"id", "v"}),
                              inserts(9, {"5", "x"}),
                              updates(9, row_of({"5", null}), {"6", unchanged}),
                              deletes(9, {"5"}),
                              truncates({3, 4}),
                              emits("hotlane", "m/1"),
                              "O" + u64(1) + text("o"),
                              "Y" + u32(1) + text("a") + text("b")}) {
        REQUIRE(pgoutput::decode(whole));
        for (std::size_t n = 0; n < whole.size(); ++n) {
            INFO(whole[0] << " cut to " << n);
            CHECK_FALSE(pgoutput::decode(std::string_view(whole).substr(0, n)));
        }
        CHECK_FALSE(pgoutput::decode(whole + '\0'));
    }
}

TEST_CASE("counts and lengths that promise more than there is are refused, not believed") {
    const auto relation_head = "R" + u32(9) + text("public") + text("t") + "d";
    for (const auto& hostile : {relation_head + u16(0xFFFF),
                                relation_head + u16(1'665) + std::string(1'700 * 10, 'a'),
                                "I" + u32(9) + "N" + u16(0xFFFF) + std::string(10, 'n'),
                                "I" + u32(9) + "N" + u16(1) + "t" + u32(0xFFFFFFFF) + "x",
                                "T" + u32(0xFFFFFFFF) + u8(0) + u32(1),
                                "M" + u8(1) + u64(0) + text("p") + u32(0xFFFFFFF0) + "c",
                                std::string("D") + u32(9) + "N" + u16(0),
                                std::string("U") + u32(9) + "X" + u16(0),
                                std::string("I") + u32(9) + "K" + u16(0),
                                std::string("I") + u32(9) + "N" + u16(1) + "z",
                                std::string("Z"),
                                std::string()})
        CHECK_FALSE(pgoutput::decode(hostile));
}
