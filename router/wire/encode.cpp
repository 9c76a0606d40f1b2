#include "router/wire/bytes.hpp"
#include "router/wire/message.hpp"

namespace hotlane::wire {

void append_startup(std::string& out,
                    std::span<const std::pair<std::string, std::string>> parameters,
                    std::uint16_t minor) {
    message_writer message(out, 0);
    message.u32(std::uint32_t{3} << 16 | minor);
    for (const auto& [name, value] : parameters)
        message.cstring(name).cstring(value);
    message.u8(0);
}

void append_ssl_request(std::string& out) {
    message_writer(out, 0).u32(80877103);
}

void append_cancel_request(std::string& out, std::uint32_t process_id, std::string_view secret) {
    message_writer(out, 0).u32(80877102).u32(process_id).bytes(secret);
}

void append_query(std::string& out, std::string_view sql) {
    message_writer(out, tag_f::query).cstring(sql);
}

void append_parse(std::string& out,
                  std::string_view statement,
                  std::string_view query,
                  std::span<const std::uint32_t> parameter_types) {
    message_writer message(out, tag_f::parse);
    message.cstring(statement).cstring(query).i16(
        static_cast<std::int16_t>(parameter_types.size()));
    for (const auto type : parameter_types)
        message.u32(type);
}

void append_bind_head(std::string& out,
                      std::size_t body_size,
                      std::string_view portal,
                      std::string_view statement) {
    out.push_back(tag_f::bind);
    char length[4];
    store_u32(length, static_cast<std::uint32_t>(body_size + sizeof length));
    out.append(length, sizeof length);
    out.append(portal).push_back('\0');
    out.append(statement).push_back('\0');
}

void append_target(std::string& out, char tag, char kind, std::string_view name) {
    message_writer(out, tag).u8(static_cast<std::uint8_t>(kind)).cstring(name);
}

void append_execute(std::string& out, std::string_view portal, std::int32_t row_limit) {
    message_writer(out, tag_f::execute).cstring(portal).i32(row_limit);
}

void append_empty(std::string& out, char tag) {
    message_writer(out, tag);
}

void append_bytes(std::string& out, char tag, std::string_view body) {
    message_writer(out, tag).bytes(body);
}

void append_error(std::string& out, const error_fields& fields, char tag) {
    message_writer message(out, tag);
    const auto field = [&](char code, std::string_view text) {
        if (!text.empty()) message.u8(static_cast<std::uint8_t>(code)).cstring(text);
    };
    field('S', fields.severity);
    field('V', fields.severity_raw.empty() ? fields.severity : fields.severity_raw);
    field('C', fields.sqlstate);
    field('M', fields.message);
    field('D', fields.detail);
    field('H', fields.hint);
    for (const auto& [code, text] : fields.others)
        field(code, text);
    message.u8(0);
}

void append_parameter_status(std::string& out, std::string_view name, std::string_view value) {
    message_writer(out, tag_b::parameter_status).cstring(name).cstring(value);
}

void append_backend_key(std::string& out, std::uint32_t process_id, std::string_view secret) {
    message_writer(out, tag_b::backend_key).u32(process_id).bytes(secret);
}

void append_authentication(std::string& out, std::uint32_t kind, std::string_view rest) {
    message_writer(out, tag_b::authentication).u32(kind).bytes(rest);
}

void append_ready(std::string& out, transaction_status status) {
    message_writer(out, tag_b::ready).u8(static_cast<std::uint8_t>(status));
}

void append_command_complete(std::string& out, std::string_view tag) {
    message_writer(out, tag_b::command_complete).cstring(tag);
}

void append_row_description(std::string& out, std::span<const column> columns) {
    message_writer message(out, tag_b::row_description);
    message.i16(static_cast<std::int16_t>(columns.size()));
    for (const auto& c : columns)
        message.cstring(c.name)
            .u32(c.table)
            .i16(c.attribute)
            .u32(c.type)
            .i16(c.type_size)
            .i32(c.type_modifier)
            .i16(c.format);
}

void append_parameter_description(std::string& out, std::span<const std::uint32_t> types) {
    message_writer message(out, tag_b::parameter_description);
    message.i16(static_cast<std::int16_t>(types.size()));
    for (const auto type : types)
        message.u32(type);
}

void append_data_row(std::string& out, std::span<const std::optional<std::string_view>> values) {
    message_writer message(out, tag_b::data_row);
    message.i16(static_cast<std::int16_t>(values.size()));
    for (const auto& value : values) {
        if (value)
            message.i32(static_cast<std::int32_t>(value->size())).bytes(*value);
        else
            message.i32(-1);
    }
}

void append_negotiate(std::string& out,
                      std::uint32_t newest_minor,
                      std::span<const std::string> unknown_options) {
    message_writer message(out, tag_b::negotiate);
    message.u32(newest_minor).u32(static_cast<std::uint32_t>(unknown_options.size()));
    for (const auto& option : unknown_options)
        message.cstring(option);
}

}  // namespace hotlane::wire
