// Where messages begin and end, whatever way the bytes arrive.
#include "router/wire/frame.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "router/wire/message.hpp"

using namespace hotlane::wire;
using namespace std::string_literals;

namespace {

std::string three_messages() {
    std::string out;
    append_query(out, "SELECT 1");
    append_empty(out, tag_f::sync);
    append_bytes(out, tag_f::copy_data, "12345");
    return out;
}

// Feeds the bytes in the given pieces and returns what was framed.
std::vector<std::pair<char, std::string>> frames(const std::vector<std::string_view>& pieces) {
    std::vector<std::pair<char, std::string>> found;
    std::string buffer;
    for (const auto piece : pieces) {
        buffer += piece;
        for (;;) {
            const auto next = scan_frame(buffer);
            REQUIRE(next.status != scan_status::invalid);
            if (next.status != scan_status::complete) break;
            found.emplace_back(next.header.tag, std::string(next.body));
            buffer.erase(0, next.header.total_size());
        }
    }
    REQUIRE(buffer.empty());
    return found;
}

std::string header(char tag, std::uint32_t length) {
    return {tag,
            static_cast<char>(length >> 24),
            static_cast<char>(length >> 16),
            static_cast<char>(length >> 8),
            static_cast<char>(length)};
}

}  // namespace

TEST_CASE("a stream split at every byte gives the same messages") {
    const auto stream = three_messages();
    const auto whole = frames({stream});
    REQUIRE(whole.size() == 3);
    for (std::size_t at = 0; at <= stream.size(); ++at) {
        const std::string_view view(stream);
        CHECK(frames({view.substr(0, at), view.substr(at)}) == whole);
    }
}

TEST_CASE("a stream that comes byte by byte gives the same messages") {
    const auto stream = three_messages();
    std::vector<std::string_view> bytes;
    for (std::size_t i = 0; i < stream.size(); ++i)
        bytes.push_back(std::string_view(stream).substr(i, 1));
    CHECK(frames(bytes) == frames({stream}));
}

TEST_CASE("a truncated message asks for more at every length") {
    std::string message;
    append_query(message, "SELECT 1");
    for (std::size_t size = 0; size < message.size(); ++size) {
        const auto found = scan_frame(std::string_view(message).substr(0, size));
        CHECK(found.status == scan_status::need_more);
        CHECK(found.has_header == (size >= header_size));
        if (found.has_header) CHECK(found.header.total_size() == message.size());
    }
}

TEST_CASE("the body points into the caller's buffer and ends at the message's end") {
    const auto stream = three_messages();
    const auto first = scan_frame(stream);
    CHECK(first.body.data() == stream.data() + header_size);
    CHECK(first.body == "SELECT 1\0"s);
}

TEST_CASE("lengths out of bounds are refused as soon as they are seen") {
    for (const std::uint32_t length :
         {0U, 1U, 3U, 0x4000'0004U, 0x7fff'ffffU, 0x8000'0000U, 0xffff'ffffU}) {
        const auto found = scan_frame(header('Q', length));
        CHECK(found.status == scan_status::invalid);
        CHECK(found.error == wire_error::bad_length);
    }
    CHECK(scan_frame(header('S', 4)).status == scan_status::complete);
    CHECK(scan_frame(header('d', 0x3fff'ffffU + 4)).status == scan_status::need_more);
}

TEST_CASE("the caller's own limit bounds the body") {
    CHECK(scan_frame(header('Q', 4 + 100), 100).status == scan_status::need_more);
    CHECK(scan_frame(header('Q', 4 + 101), 100).status == scan_status::invalid);
}

TEST_CASE("startup packets have bounds of their own") {
    const auto length = [](std::uint32_t n) { return header('?', n).substr(1); };
    CHECK(scan_startup("").status == scan_status::need_more);
    CHECK(scan_startup(length(8).substr(0, 3)).status == scan_status::need_more);
    for (const std::uint32_t n : {0U, 4U, 7U, startup_size_max + 1, 0xffff'ffffU})
        CHECK(scan_startup(length(n)).status == scan_status::invalid);
    CHECK(scan_startup(length(startup_size_max)).status == scan_status::need_more);
    // An HTTP request is no startup packet.
    CHECK(scan_startup("GET / HTTP/1.1").status == scan_status::invalid);
}

TEST_CASE("a startup packet split at every byte is found whole") {
    std::string packet;
    const std::vector<std::pair<std::string, std::string>> parameters{{"user", "ada"}};
    append_startup(packet, parameters);
    for (std::size_t size = 0; size < packet.size(); ++size)
        CHECK(scan_startup(std::string_view(packet).substr(0, size)).status ==
              scan_status::need_more);
    const auto whole = scan_startup(packet + "more");
    CHECK(whole.status == scan_status::complete);
    CHECK(whole.body.size() == packet.size() - 4);
    CHECK(whole.header.tag == 0);
}

TEST_CASE("every wire error has a text of its own") {
    std::vector<std::string_view> texts;
    for (const auto error : {wire_error::bad_length,
                             wire_error::bad_tag,
                             wire_error::truncated,
                             wire_error::trailing_bytes,
                             wire_error::bad_startup,
                             wire_error::missing_null,
                             wire_error::bad_count}) {
        const auto text = to_string(error);
        CHECK(std::find(texts.begin(), texts.end(), text) == texts.end());
        texts.push_back(text);
    }
}
