#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "router/move/changed_keys.hpp"
#include "router/move/values.hpp"
#include "stream.hpp"

using namespace hotlane::move;
using namespace stream;

namespace {

using keys = std::set<key_values>;

keys of(const key_set& s) {
    const auto all = s.keys();
    return {all.begin(), all.end()};
}

snapshot_view snapshot(const std::string& text) {
    return *snapshot_view::read(text);
}

// Table 0 has oid 1 and key (id); table 1 has oid 2 and key (b, a).
struct feed_on_two : change_feed {
    explicit feed_on_two(key_limits limits = {})
        : change_feed({{1, {"id"}}, {2, {"b", "a"}}}, limits) {
        REQUIRE(take(describes(1, "t", {"id", "v"})));
        REQUIRE(take(describes(2, "u", {"a", "b", "v"})));
    }
    void transaction(std::uint32_t xid, const std::vector<std::string>& messages) {
        REQUIRE(take(begins(xid)));
        for (const auto& m : messages)
            REQUIRE(take(m));
        REQUIRE(take(commits()));
    }
};

}  // namespace

TEST_CASE("every kind of change names its keys, in the plan's order of columns") {
    feed_on_two feed;
    feed.transaction(10,
                     {inserts(1, {"5", "x"}),
                      updates(1, std::nullopt, {"6", unchanged}),
                      updates(1, row_of({"7", null}), {"8", "y"}),
                      deletes(1, {"9", null}),
                      inserts(2, {"", "a,b", "v"})});
    const auto pass = feed.take_pass();
    CHECK(of(pass[0]) == keys{{"5"}, {"6"}, {"7"}, {"8"}, {"9"}});
    CHECK(of(pass[1]) == keys{{"a,b", ""}});
    CHECK(feed.take_pass()[0].empty());
}

TEST_CASE("the same key counts once, and keys do not run into each other") {
    feed_on_two feed;
    feed.transaction(10,
                     {deletes(1, {"5"}),
                      inserts(1, {"5", "x"}),
                      inserts(2, {"a", "bc", ""}),
                      inserts(2, {"ab", "c", ""})});
    const auto pass = feed.take_pass();
    CHECK(of(pass[0]) == keys{{"5"}});
    CHECK(of(pass[1]) == keys{{"bc", "a"}, {"c", "ab"}});
}

TEST_CASE("a key that is not there in full makes the table count whole") {
    for (const auto& message : {inserts(1, {null, "x"}),
                                updates(1, std::nullopt, {unchanged, "x"}),
                                deletes(1, {null}),
                                truncates({7, 1})}) {
        feed_on_two feed;
        feed.transaction(10, {message, inserts(2, {"a", "b", "v"})});
        const auto pass = feed.take_pass();
        CHECK(pass[0].whole());
        CHECK_FALSE(pass[1].whole());
    }
    // A TOASTed key that the UPDATE left alone is in the old row.
    feed_on_two feed;
    feed.transaction(10, {updates(1, row_of({"5", null}), {unchanged, "x"})});
    CHECK(of(feed.take_pass()[0]) == keys{{"5"}});
}

TEST_CASE("what the pass's snapshot does not see is kept for the next pass") {
    feed_on_two feed;
    feed.transaction(10, {inserts(1, {"10", ""})});
    REQUIRE(feed.read_at(snapshot("12:14:12")));
    feed.transaction(11, {inserts(1, {"11", ""})});
    feed.transaction(12, {inserts(1, {"12", ""})});  // decoded, and still running for the snapshot
    feed.transaction(14, {inserts(1, {"14", ""})});  // began after it
    CHECK(of(feed.take_pass()[0]) == keys{{"10"}, {"11"}});
    // The next snapshot must see what it then reads.
    CHECK_FALSE(feed.read_at(snapshot("12:15:12")));
    CHECK_FALSE(feed.read_at(snapshot("14:14:")));
    CHECK(feed.read_at(snapshot("15:15:")));
    CHECK(of(feed.take_pass()[0]) == keys{{"12"}, {"14"}});
}

TEST_CASE("a snapshot older than a change that was read before it is refused") {
    feed_on_two feed;
    feed.transaction(20, {inserts(1, {"1", ""})});
    CHECK_FALSE(feed.read_at(snapshot("20:21:20")));
    feed.forget_seen(snapshot("20:22:20,21"));
    CHECK_FALSE(feed.read_at(snapshot("20:21:20")));
    feed.forget_seen(snapshot("21:21:"));
    CHECK(feed.read_at(snapshot("20:21:")));
    // Transactions that changed nothing of ours need not be seen.
    feed_on_two other;
    other.transaction(20, {emits("hotlane", "m/1")});
    CHECK(other.read_at(snapshot("20:21:20")));
    CHECK(other.mark() == "m/1");
}

TEST_CASE("numbers of transactions wrap round") {
    const auto s = snapshot("4294967290:4294967300:4294967295,4294967298");
    CHECK(s.sees(4'294'967'290U));
    CHECK_FALSE(s.sees(4'294'967'295U));
    CHECK(s.sees(1));
    CHECK_FALSE(s.sees(2));
    CHECK(s.sees(3));
    CHECK_FALSE(s.sees(4));
    for (const char* bad : {"", "1", "1:2", "a:2:", "1:b:", "1:2:x", "1:2:3,,4", "1:2:-3"})
        CHECK_FALSE(snapshot_view::read(bad));
}

TEST_CASE("memory is bounded: a table with too many keys counts whole") {
    feed_on_two feed({3, 1'000, 100, 10});
    for (int i = 0; i < 3; ++i)
        feed.transaction(10, {inserts(1, {std::to_string(i), ""})});
    CHECK_FALSE(feed.now(0).whole());
    feed.transaction(10, {inserts(1, {"0", ""})});
    CHECK_FALSE(feed.now(0).whole());
    feed.transaction(10, {inserts(1, {"3", ""})});
    CHECK(feed.now(0).whole());
    CHECK(feed.now(0).bytes() == 0);
    feed.transaction(10, {inserts(2, {std::string(2'000, 'x'), "", ""})});
    CHECK(feed.now(1).whole());
}

TEST_CASE("transactions that no snapshot sees are bounded too") {
    feed_on_two feed({1'000, 100'000, 2, 10});
    feed.transaction(1, {inserts(1, {"1", ""})});
    feed.transaction(2, {inserts(1, {"2", ""})});
    REQUIRE(feed.take(begins(3)));
    REQUIRE(feed.take(inserts(1, {"3", ""})));
    CHECK_FALSE(feed.take(commits()));
}

TEST_CASE("a stream that makes no sense ends the feed") {
    CHECK_FALSE(feed_on_two().take(inserts(1, {"1", ""})));  // outside of a transaction
    CHECK_FALSE(feed_on_two().take(commits()));
    CHECK_FALSE(feed_on_two().take("?"));
    CHECK_FALSE(feed_on_two().take(describes(1, "t", {"v"})));  // without its key
    feed_on_two twice;
    REQUIRE(twice.take(begins(1)));
    CHECK_FALSE(twice.take(begins(2)));
    feed_on_two unknown;
    REQUIRE(unknown.take(begins(1)));
    CHECK_FALSE(unknown.take(inserts(3, {"1", ""})));
    // One that is described and not watched is none of ours.
    REQUIRE(unknown.take(describes(3, "x", {"id"})));
    CHECK(unknown.take(inserts(3, {"1", ""})));
}

TEST_CASE("what a pass did not come to is put back") {
    feed_on_two feed;
    feed.transaction(1, {inserts(1, {"1", ""}), inserts(2, {"a", "b", ""})});
    REQUIRE(feed.read_at(snapshot("2:2:")));
    const auto pass = feed.take_pass();
    feed.count_whole(0);
    feed.put_back(1, pass[1]);
    feed.transaction(5, {inserts(2, {"c", "d", ""})});
    REQUIRE(feed.read_at(snapshot("6:6:")));
    const auto next = feed.take_pass();
    CHECK(next[0].whole());
    CHECK(of(next[1]) == keys{{"b", "a"}, {"d", "c"}});
}

TEST_CASE("sums of rows that came and went add up to the sum of what is there") {
    const std::vector<value_type> types{value_type::integer};
    const auto sum = [&](const std::vector<std::int64_t>& rows) {
        table_digest d("seed");
        for (const auto r : rows)
            d.add(types, {value{false, r, 0, {}}});
        return d.sum();
    };
    auto table = sum({1, 2, 3, 4, 5});
    table.subtract(sum({2, 5}));
    table.add(sum({6, 7, 8}));
    CHECK(table == sum({8, 7, 6, 4, 3, 1}));
    table.subtract(sum({1, 3, 4, 6, 7, 8}));
    CHECK(table == digest{});
    digest borrow{1, 0};
    borrow.subtract({0, 1});
    CHECK(borrow == digest{0, ~std::uint64_t{0}});
}
