// The book of statements: one text for each fingerprint, bounded, and nothing old.
#include <catch2/catch.hpp>

#include "router/placement/statements.hpp"

using namespace hotlane;
using placement::statement_book;

namespace {

policy::time_point at(int ms) {
    return policy::time_point(policy::duration(ms));
}
std::vector<std::string> texts(const statement_book& book, int now) {
    std::vector<std::string> out;
    for (const auto& one : book.lately(at(now)))
        out.push_back(one.sql);
    return out;
}

}  // namespace

TEST_CASE("one text for each fingerprint, in the order of their first sight") {
    statement_book book;
    const std::uint32_t types[] = {20, 25};
    book.see(1, "a", {}, at(0));
    book.see(2, "b", types, at(1));
    book.see(1, "a again", {}, at(2));
    CHECK(texts(book, 3) == std::vector<std::string>{"a again", "b"});
    CHECK(book.lately(at(3))[1].types == std::vector<std::uint32_t>{20, 25});
}

TEST_CASE("a full book lets the one go that was not seen for longest, and counts it") {
    statement_book book;
    book.set_bounds({.statements = 2, .sample_bytes = 5, .lately = policy::duration(100)});
    CHECK(book.see(1, "a", {}, at(1)) == statement_book::kept::yes);
    CHECK(book.see(2, "b", {}, at(2)) == statement_book::kept::yes);
    CHECK(book.see(1, "a", {}, at(3)) == statement_book::kept::yes);
    CHECK(book.see(3, "c", {}, at(4)) == statement_book::kept::another_went);
    CHECK(texts(book, 4) == std::vector<std::string>{"a", "c"});
    CHECK(book.evicted() == 1);
    CHECK(book.see(4, "longer", {}, at(5)) == statement_book::kept::too_long);
    CHECK(book.too_long() == 1);
    CHECK(texts(book, 104) == std::vector<std::string>{"c"});
}
