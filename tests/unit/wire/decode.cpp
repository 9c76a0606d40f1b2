// Decoders are total: every truncation and every surplus byte is an error, never a guess.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "router/wire/message.hpp"

using namespace hotlane::wire;
using namespace std::string_literals;

namespace {

struct sample {
    std::string name;
    std::string body;
    std::function<bool(std::string_view)> decodes;
};

template <typename Decode>
auto accepted_by(Decode decode) {
    return [decode](std::string_view body) { return decode(body).has_value(); };
}

const std::vector<sample>& samples() {
    static const std::vector<sample> all{
        {"ssl request", "\x04\xd2\x16\x2f"s, accepted_by(decode_first_packet)},
        {"gss request", "\x04\xd2\x16\x30"s, accepted_by(decode_first_packet)},
        {"startup", "\0\3\0\0user\0ada\0\0"s, accepted_by(decode_first_packet)},
        {"query", "SELECT 1\0"s, accepted_by(decode_query)},
        {"parse", "s\0q\0\0\1\0\0\0\x14"s, accepted_by(decode_parse)},
        {"bind", "p\0s\0\0\1\0\1\0\2\xff\xff\xff\xff\0\0\0\1x\0\1\0\1"s, accepted_by(decode_bind)},
        {"describe", "Ss\0"s, accepted_by(decode_target)},
        {"execute", "p\0\0\0\0\7"s, accepted_by(decode_execute)},
        {"parameter status", "a\0b\0"s, accepted_by(decode_parameter_status)},
        {"ready", "I"s, accepted_by(decode_ready)},
        {"command complete", "SELECT 1\0"s, accepted_by(decode_command_complete)},
        {"row description",
         "\0\1n\0\0\0\0\1\0\2\0\0\0\x14\0\x08\xff\xff\xff\xff\0\1"s,
         accepted_by(decode_row_description)},
        {"parameter description", "\0\1\0\0\0\x19"s, accepted_by(decode_parameter_description)},
        {"data row", "\0\2\xff\xff\xff\xff\0\0\0\1x"s, accepted_by(decode_data_row)},
    };
    return all;
}

}  // namespace

TEST_CASE("whole bodies decode; every truncation and a surplus byte do not") {
    for (const auto& s : samples()) {
        INFO(s.name);
        CHECK(s.decodes(s.body));
        for (std::size_t size = 0; size < s.body.size(); ++size) {
            INFO("cut at " << size);
            CHECK_FALSE(s.decodes(std::string_view(s.body).substr(0, size)));
        }
        CHECK_FALSE(s.decodes(s.body + "x"));
    }
}

TEST_CASE("bind gives its formats, values and nulls") {
    const auto body = "p\0s\0\0\1\0\1\0\2\xff\xff\xff\xff\0\0\0\1x\0\1\0\1"s;
    const auto bound = decode_bind(body);
    REQUIRE(bound);
    CHECK(bound->portal == "p");
    CHECK(bound->statement == "s");
    CHECK(bound->parameter_formats == std::vector<std::int16_t>{1});
    REQUIRE(bound->parameters.size() == 2);
    CHECK_FALSE(bound->parameters[0]);
    CHECK(bound->parameters[1] == "x");
    CHECK(bound->result_formats == std::vector<std::int16_t>{1});
    const auto head = decode_bind_head(body);
    REQUIRE(head);
    CHECK(head->statement == "s");
    CHECK(head->rest == std::string_view(body).substr(4));
}

TEST_CASE("an empty value is not a null") {
    const auto body = "\0\2\0\0\0\0\xff\xff\xff\xff"s;
    const auto values = decode_data_row(body);
    REQUIRE(values);
    CHECK((*values)[0].has_value());
    CHECK_FALSE((*values)[1].has_value());
}

TEST_CASE("a count that the body cannot hold takes no memory") {
    CHECK(decode_data_row("\xff\xff"s).error() == wire_error::bad_count);
    CHECK(decode_row_description("\xff\xff\0"s).error() == wire_error::bad_count);
    CHECK(decode_parameter_description("\x80\0\0\0\0\1"s).error() == wire_error::bad_count);
    CHECK(decode_bind("\0\0\xff\xff"s).error() == wire_error::bad_count);
}

TEST_CASE("value lengths below minus one and past the end are refused") {
    CHECK_FALSE(decode_data_row("\0\1\xff\xff\xff\xfe"s));
    CHECK_FALSE(decode_data_row("\0\1\x80\0\0\0"s));
    CHECK_FALSE(decode_data_row("\0\1\x7f\xff\xff\xffx"s));
}

TEST_CASE("cancel requests carry 1 to 256 bytes of secret") {
    const auto with = [](std::size_t size) {
        return "\x04\xd2\x16\x2e\0\0\0\1"s + std::string(size, 'k');
    };
    CHECK_FALSE(decode_first_packet(with(0)));
    CHECK(decode_first_packet(with(4)));
    CHECK(decode_first_packet(with(256)));
    CHECK_FALSE(decode_first_packet(with(257)));
    CHECK_FALSE(decode_first_packet("\x04\xd2\x16\x2e\0\0\1"s));
}

TEST_CASE("a startup packet keeps the order of its parameters and knows its version") {
    const auto body = "\0\3\0\2user\0ada\0database\0shop\0\0"s;
    const auto packet = decode_first_packet(body);
    REQUIRE(packet);
    const auto& startup = std::get<startup_message>(*packet);
    CHECK(startup.minor == 2);
    REQUIRE(startup.parameters.size() == 2);
    CHECK(startup.parameters[1] ==
          std::pair<std::string_view, std::string_view>{"database", "shop"});
    CHECK(decode_first_packet("\0\2\0\0\0"s).error() == wire_error::bad_startup);
    CHECK(decode_first_packet("\0\3\0\0\0\0"s).error() == wire_error::trailing_bytes);
}

TEST_CASE("errors without their last zero are read, torn fields are not") {
    const auto fields = decode_error("SERROR\0C40001\0Mwrite conflict\0Hh\0Rfile\0\0"s);
    REQUIRE(fields);
    CHECK(fields->sqlstate == "40001");
    CHECK(fields->message == "write conflict");
    CHECK(fields->hint == "h");
    CHECK(fields->others == std::vector<std::pair<char, std::string>>{{'R', "file"}});
    CHECK(decode_error("C40001\0"s));
    CHECK(decode_error(""));
    CHECK(decode_error("C40001"s).error() == wire_error::missing_null);
}

TEST_CASE("describe and close take statements and portals only") {
    CHECK(decode_target("X\0"s).error() == wire_error::bad_tag);
    CHECK(decode_ready("X").error() == wire_error::bad_tag);
    CHECK(decode_ready("E").value() == transaction_status::failed);
}

TEST_CASE("key data of protocol 3.2 may be long") {
    const auto body = "\0\0\0\1"s + std::string(32, 'k');
    const auto key = decode_backend_key(body);
    REQUIRE(key);
    CHECK(key->process_id == 1);
    CHECK(key->secret_key.size() == 32);
    CHECK_FALSE(decode_backend_key("\0\0\0\1"s + std::string(257, 'k')));
    CHECK_FALSE(decode_backend_key("\0\0"s));
}

TEST_CASE("a row description is compared with known types where it stands") {
    const std::vector<std::uint32_t> one{20};
    const auto body = "\0\1n\0\0\0\0\1\0\2\0\0\0\x14\0\x08\xff\xff\xff\xff\0\1"s;
    CHECK(describes(body, one));
    CHECK_FALSE(describes(body, std::vector<std::uint32_t>{21}));
    CHECK_FALSE(describes(body, std::vector<std::uint32_t>{20, 20}));
    CHECK_FALSE(describes(body, {}));
    CHECK(describes("\0\0"s, {}));
    CHECK_FALSE(describes(body + "x", one));
    for (std::size_t size = 0; size < body.size(); ++size)
        CHECK_FALSE(describes(std::string_view(body).substr(0, size), one));
}
