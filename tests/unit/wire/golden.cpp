// Encoders against bytes written down by hand from the PostgreSQL manual, chapter "Message
// Formats".
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "router/wire/message.hpp"

using namespace hotlane::wire;
using namespace std::string_literals;

namespace {

using settings = std::vector<std::pair<std::string, std::string>>;

template <typename Append>
std::string made(Append append) {
    std::string out;
    append(out);
    return out;
}

}  // namespace

TEST_CASE("first packets") {
    CHECK(made([](auto& o) { append_ssl_request(o); }) == "\0\0\0\x08\x04\xd2\x16\x2f"s);
    CHECK(made([](auto& o) { append_cancel_request(o, 258, "\1\2\3\4"); }) ==
          "\0\0\0\x10\x04\xd2\x16\x2e\0\0\1\2\1\2\3\4"s);
    CHECK(made([](auto& o) {
              append_startup(o, settings{{"user", "ada"}});
          }) == "\0\0\0\x12\0\3\0\0user\0ada\0\0"s);
    CHECK(made([](auto& o) { append_startup(o, settings{}, 2); }) == "\0\0\0\x09\0\3\0\2\0"s);
}

TEST_CASE("client messages") {
    const std::vector<std::uint32_t> types{20, 0};
    CHECK(made([](auto& o) { append_query(o, "SELECT 1"); }) == "Q\0\0\0\x0dSELECT 1\0"s);
    CHECK(made([&](auto& o) { append_parse(o, "s", "q", types); }) ==
          "P\0\0\0\x12s\0q\0\0\2\0\0\0\x14\0\0\0\0"s);
    CHECK(made([](auto& o) { append_target(o, tag_f::describe, 'S', "s"); }) == "D\0\0\0\7Ss\0"s);
    CHECK(made([](auto& o) { append_target(o, tag_f::close, 'P', ""); }) == "C\0\0\0\6P\0"s);
    CHECK(made([](auto& o) { append_execute(o, "", 300); }) == "E\0\0\0\x09\0\0\0\1\x2c"s);
    CHECK(made([](auto& o) { append_empty(o, tag_f::sync); }) == "S\0\0\0\4"s);
    CHECK(made([](auto& o) { append_bytes(o, tag_f::copy_data, "a\nb"); }) == "d\0\0\0\7a\nb"s);
}

TEST_CASE("server messages") {
    CHECK(made([](auto& o) { append_authentication(o, 0); }) == "R\0\0\0\x08\0\0\0\0"s);
    CHECK(made([](auto& o) { append_authentication(o, 10, "SCRAM-SHA-256\0\0"s); }) ==
          "R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0"s);
    CHECK(made([](auto& o) { append_parameter_status(o, "a", "b"); }) ==
          "S\0\0\0\x08"
          "a\0b\0"s);
    CHECK(made([](auto& o) { append_backend_key(o, 7, "\0\0\0\0"s); }) ==
          "K\0\0\0\x0c\0\0\0\7\0\0\0\0"s);
    CHECK(made([](auto& o) { append_ready(o, transaction_status::in_block); }) == "Z\0\0\0\5T"s);
    CHECK(made([](auto& o) { append_command_complete(o, "UPDATE 1"); }) ==
          "C\0\0\0\x0dUPDATE 1\0"s);
    const std::vector<std::uint32_t> types{25};
    CHECK(made([&](auto& o) { append_parameter_description(o, types); }) ==
          "t\0\0\0\x0a\0\1\0\0\0\x19"s);
    const std::vector<std::string> options{"_pq_.x"};
    CHECK(made([&](auto& o) { append_negotiate(o, 0, options); }) ==
          "v\0\0\0\x13\0\0\0\0\0\0\0\1_pq_.x\0"s);
}

TEST_CASE("rows and their description") {
    const std::vector<std::optional<std::string_view>> values{"1", std::nullopt, ""};
    CHECK(made([&](auto& o) { append_data_row(o, values); }) ==
          "D\0\0\0\x13\0\3\0\0\0\1"
          "1\xff\xff\xff\xff\0\0\0\0"s);
    const std::vector<column> columns{{.name = "n",
                                       .table = 1,
                                       .attribute = 2,
                                       .type = 20,
                                       .type_size = 8,
                                       .type_modifier = -1,
                                       .format = 1}};
    CHECK(made([&](auto& o) { append_row_description(o, columns); }) ==
          "T\0\0\0\x1a\0\1n\0\0\0\0\1\0\2\0\0\0\x14\0\x08\xff\xff\xff\xff\0\1"s);
}

TEST_CASE("errors name severity twice and leave empty fields out") {
    error_fields fields{.severity = "ERROR", .sqlstate = "40001", .message = "m"};
    CHECK(made([&](auto& o) { append_error(o, fields); }) ==
          "E\0\0\0\x1dSERROR\0VERROR\0C40001\0Mm\0\0"s);
    fields.hint = "h"s;
    fields.others.emplace_back('P', "3");
    CHECK(made([&](auto& o) { append_error(o, fields, tag_b::notice); }) ==
          "N\0\0\0\x23SERROR\0VERROR\0C40001\0Mm\0Hh\0P3\0\0"s);
}

TEST_CASE("a message is appended behind what is there already") {
    std::string out;
    out.append("before");
    append_empty(out, tag_f::flush);
    CHECK(out == "beforeH\0\0\0\4"s);
}
