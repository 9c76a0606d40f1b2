#include "router/wire/bytes.hpp"
#include "router/wire/message.hpp"

namespace hotlane::wire {
namespace {

constexpr std::uint32_t code_cancel = 80877102, code_ssl = 80877103, code_gssenc = 80877104;

template <typename Value>
decoded<Value> finish(const reader& in, Value value) {
    if (!in.ok()) return tl::unexpected(wire_error::truncated);
    if (!in.at_end()) return tl::unexpected(wire_error::trailing_bytes);
    return value;
}

decoded<first_packet> decode_startup(reader in, std::uint32_t version) {
    startup_message message{.major = static_cast<std::uint16_t>(version >> 16),
                            .minor = static_cast<std::uint16_t>(version & 0xffff)};
    if (message.major != 3) return tl::unexpected(wire_error::bad_startup);
    for (;;) {
        const auto name = in.cstring();
        if (!in.ok()) return tl::unexpected(wire_error::missing_null);
        if (name.empty()) break;
        const auto value = in.cstring();
        if (!in.ok()) return tl::unexpected(wire_error::missing_null);
        message.parameters.emplace_back(name, value);
    }
    if (!in.at_end()) return tl::unexpected(wire_error::trailing_bytes);
    return message;
}

// Reads a count and that many elements; a count that the rest cannot hold is refused before any
// memory is taken for it.
template <typename Element, typename Read>
bool read_list(reader& in, std::vector<Element>& out, std::size_t element_size_min, Read read) {
    const std::size_t count = in.u16();
    if (count * element_size_min > in.rest().size()) return false;
    out.reserve(count);
    for (std::size_t i = 0; i < count && in.ok(); ++i)
        out.push_back(read());
    return in.ok();
}

std::optional<std::string_view> read_value(reader& in) {
    const auto size = in.i32();
    if (size == -1) return std::nullopt;
    // A size below -1 becomes one that no body holds, so the reader fails.
    return in.bytes(size < 0 ? std::size_t{0x8000'0000} : static_cast<std::size_t>(size));
}

}  // namespace

decoded<first_packet> decode_first_packet(std::string_view body) {
    reader in(body);
    const auto version = in.u32();
    if (!in.ok()) return tl::unexpected(wire_error::truncated);
    if (version == code_ssl) return finish(in, first_packet{ssl_request{}});
    if (version == code_gssenc) return finish(in, first_packet{gssenc_request{}});
    if (version == code_cancel) {
        cancel_request request{.process_id = in.u32()};
        request.secret_key = in.rest();
        const bool fits = !request.secret_key.empty() && request.secret_key.size() <= 256;
        if (!in.ok() || !fits) return tl::unexpected(wire_error::bad_startup);
        return request;
    }
    return decode_startup(in, version);
}

decoded<std::string_view> decode_query(std::string_view body) {
    reader in(body);
    const auto sql = in.cstring();
    return finish(in, sql);
}

decoded<parse_message> decode_parse(std::string_view body) {
    reader in(body);
    parse_message message{.statement = in.cstring(), .query = in.cstring()};
    if (!read_list(in, message.parameter_types, 4, [&] { return in.u32(); }))
        return tl::unexpected(wire_error::bad_count);
    return finish(in, std::move(message));
}

decoded<bind_head> decode_bind_head(std::string_view body) {
    reader in(body);
    bind_head head{.portal = in.cstring(), .statement = in.cstring()};
    if (!in.ok()) return tl::unexpected(wire_error::missing_null);
    head.rest = in.rest();
    return head;
}

decoded<bind_message> decode_bind(std::string_view body) {
    reader in(body);
    bind_message message{.portal = in.cstring(), .statement = in.cstring()};
    const auto format = [&] { return in.i16(); };
    if (!read_list(in, message.parameter_formats, 2, format) ||
        !read_list(in, message.parameters, 4, [&] { return read_value(in); }) ||
        !read_list(in, message.result_formats, 2, format))
        return tl::unexpected(wire_error::bad_count);
    return finish(in, std::move(message));
}

std::optional<std::string_view> bind_value(std::string_view rest, std::uint16_t number) {
    reader in(rest);
    for (auto formats = in.i16(); formats > 0 && in.ok(); --formats)
        in.i16();
    const auto count = in.i16();
    if (number == 0 || number > count) return std::nullopt;
    for (std::uint16_t i = 1; i < number && in.ok(); ++i)
        read_value(in);
    const auto value = read_value(in);
    if (!in.ok()) return std::nullopt;
    return value;
}

decoded<target_message> decode_target(std::string_view body) {
    reader in(body);
    const target_message message{.kind = static_cast<char>(in.u8()), .name = in.cstring()};
    if (in.ok() && message.kind != 'S' && message.kind != 'P')
        return tl::unexpected(wire_error::bad_tag);
    return finish(in, message);
}

decoded<execute_message> decode_execute(std::string_view body) {
    reader in(body);
    const execute_message message{.portal = in.cstring(), .row_limit = in.i32()};
    return finish(in, message);
}

decoded<error_fields> decode_error(std::string_view body) {
    reader in(body);
    error_fields fields;
    for (;;) {
        if (in.at_end()) break;  // some servers leave out the final zero: be lenient
        const char code = static_cast<char>(in.u8());
        if (code == 0) break;
        const auto text = in.cstring();
        if (!in.ok()) return tl::unexpected(wire_error::missing_null);
        switch (code) {
            case 'S':
                fields.severity = text;
                break;
            case 'V':
                fields.severity_raw = text;
                break;
            case 'C':
                fields.sqlstate = text;
                break;
            case 'M':
                fields.message = text;
                break;
            case 'D':
                fields.detail = text;
                break;
            case 'H':
                fields.hint = text;
                break;
            default:
                fields.others.emplace_back(code, std::string(text));
                break;
        }
    }
    return fields;
}

decoded<parameter_status> decode_parameter_status(std::string_view body) {
    reader in(body);
    const parameter_status status{.name = in.cstring(), .value = in.cstring()};
    return finish(in, status);
}

decoded<backend_key> decode_backend_key(std::string_view body) {
    reader in(body);
    backend_key key{.process_id = in.u32()};
    key.secret_key = in.rest();
    if (!in.ok() || key.secret_key.size() > 256) return tl::unexpected(wire_error::truncated);
    return key;
}

decoded<authentication> decode_authentication(std::string_view body) {
    reader in(body);
    authentication auth{.kind = in.u32()};
    auth.rest = in.rest();
    if (!in.ok()) return tl::unexpected(wire_error::truncated);
    return auth;
}

decoded<transaction_status> decode_ready(std::string_view body) {
    if (body.size() != 1) return tl::unexpected(wire_error::truncated);
    switch (body[0]) {
        case 'I':
            return transaction_status::idle;
        case 'T':
            return transaction_status::in_block;
        case 'E':
            return transaction_status::failed;
        default:
            return tl::unexpected(wire_error::bad_tag);
    }
}

decoded<std::string_view> decode_command_complete(std::string_view body) {
    return decode_query(body);
}

decoded<std::vector<column>> decode_row_description(std::string_view body) {
    reader in(body);
    std::vector<column> columns;
    const bool ok = read_list(in, columns, 19, [&] {
        return column{.name = in.cstring(),
                      .table = in.u32(),
                      .attribute = in.i16(),
                      .type = in.u32(),
                      .type_size = in.i16(),
                      .type_modifier = in.i32(),
                      .format = in.i16()};
    });
    if (!ok) return tl::unexpected(wire_error::bad_count);
    return finish(in, std::move(columns));
}

bool describes(std::string_view row_description, std::span<const std::uint32_t> types) {
    reader in(row_description);
    if (in.u16() != types.size()) return false;
    for (const auto type : types) {
        in.cstring();
        in.u32();
        in.i16();
        if (in.u32() != type) return false;
        in.i16();
        in.i32();
        in.i16();
    }
    return in.ok() && in.rest().empty();
}

decoded<std::vector<std::uint32_t>> decode_parameter_description(std::string_view body) {
    reader in(body);
    std::vector<std::uint32_t> types;
    if (!read_list(in, types, 4, [&] { return in.u32(); }))
        return tl::unexpected(wire_error::bad_count);
    return finish(in, std::move(types));
}

decoded<std::vector<std::optional<std::string_view>>> decode_data_row(std::string_view body) {
    reader in(body);
    std::vector<std::optional<std::string_view>> values;
    if (!read_list(in, values, 4, [&] { return read_value(in); }))
        return tl::unexpected(wire_error::bad_count);
    return finish(in, std::move(values));
}

}  // namespace hotlane::wire
