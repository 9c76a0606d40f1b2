// Messages of protocol v3 as structs of views: decode a body, append a message to a string.
//
// Field names are those of the PostgreSQL manual, chapter "Message Formats". Views point into the
// decoded body. Decoders are total: any bytes give a value or a wire_error.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tl/expected.hpp>

#include "router/wire/frame.hpp"

namespace hotlane::wire {

template <typename Value>
using decoded = tl::expected<Value, wire_error>;

// Tags, client to server.
namespace tag_f {
inline constexpr char bind = 'B', close = 'C', copy_data = 'd', copy_done = 'c', copy_fail = 'f',
                      describe = 'D', execute = 'E', flush = 'H', function_call = 'F', parse = 'P',
                      password = 'p', query = 'Q', sync = 'S', terminate = 'X';
}
// Tags, server to client.
namespace tag_b {
inline constexpr char authentication = 'R', backend_key = 'K', bind_complete = '2',
                      close_complete = '3', command_complete = 'C', copy_data = 'd',
                      copy_done = 'c', copy_in = 'G', copy_out = 'H', copy_both = 'W',
                      data_row = 'D', empty_query = 'I', error = 'E', function_result = 'V',
                      negotiate = 'v', no_data = 'n', notice = 'N', notification = 'A',
                      parameter_description = 't', parameter_status = 'S', parse_complete = '1',
                      portal_suspended = 's', ready = 'Z', row_description = 'T';
}

// ---- first packets ----
struct ssl_request {};
struct gssenc_request {};
struct cancel_request {
    std::uint32_t process_id{};
    std::string_view secret_key;  // 4 bytes in protocol 3.0, up to 256 in 3.2
};
struct startup_message {
    std::uint16_t major{};
    std::uint16_t minor{};
    std::vector<std::pair<std::string_view, std::string_view>>
        parameters;  // in order, names unique or not
};
using first_packet = std::variant<ssl_request, gssenc_request, cancel_request, startup_message>;

// `body` is what scan_startup() gave.
decoded<first_packet> decode_first_packet(std::string_view body);

void append_startup(std::string& out,
                    std::span<const std::pair<std::string, std::string>> parameters,
                    std::uint16_t minor = 0);
void append_ssl_request(std::string& out);
void append_cancel_request(std::string& out, std::uint32_t process_id, std::string_view secret);

// ---- client messages ----
struct parse_message {
    std::string_view statement;
    std::string_view query;
    std::vector<std::uint32_t> parameter_types;
};
struct bind_head {  // what routing needs of Bind; formats and values stay raw
    std::string_view portal;
    std::string_view statement;
    std::string_view rest;
};
struct bind_message {
    std::string_view portal;
    std::string_view statement;
    std::vector<std::int16_t> parameter_formats;
    std::vector<std::optional<std::string_view>> parameters;
    std::vector<std::int16_t> result_formats;
};
struct target_message {  // Describe and Close: kind is 'S' (statement) or 'P' (portal)
    char kind{};
    std::string_view name;
};
struct execute_message {
    std::string_view portal;
    std::int32_t row_limit{};  // 0: no limit
};

decoded<std::string_view> decode_query(std::string_view body);
decoded<parse_message> decode_parse(std::string_view body);
decoded<bind_head> decode_bind_head(std::string_view body);
decoded<bind_message> decode_bind(std::string_view body);
// The raw value of a parameter, from 1, of a Bind's `rest`. Nothing: NULL, or there is none.
std::optional<std::string_view> bind_value(std::string_view rest, std::uint16_t number);
decoded<target_message> decode_target(std::string_view body);
decoded<execute_message> decode_execute(std::string_view body);

void append_query(std::string& out, std::string_view sql);
void append_parse(std::string& out,
                  std::string_view statement,
                  std::string_view query,
                  std::span<const std::uint32_t> parameter_types);
// The beginning of a Bind of `body_size` bytes; what follows the two names is the caller's.
void append_bind_head(std::string& out,
                      std::size_t body_size,
                      std::string_view portal,
                      std::string_view statement);
void append_target(std::string& out, char tag, char kind, std::string_view name);
void append_execute(std::string& out, std::string_view portal, std::int32_t row_limit);
void append_empty(std::string& out, char tag);                         // Sync, Flush, CopyDone, ...
void append_bytes(std::string& out, char tag, std::string_view body);  // any body as it is

// ---- server messages ----
enum class transaction_status : char { idle = 'I', in_block = 'T', failed = 'E' };

// ErrorResponse and NoticeResponse: field code to text. A missing field is empty.
struct error_fields {
    std::string severity;      // S
    std::string severity_raw;  // V, never translated
    std::string sqlstate;      // C
    std::string message;       // M
    std::string detail;        // D
    std::string hint;          // H
    std::vector<std::pair<char, std::string>> others;
};
struct parameter_status {
    std::string_view name;
    std::string_view value;
};
struct backend_key {
    std::uint32_t process_id{};
    std::string_view secret_key;
};
struct authentication {
    std::uint32_t kind{};  // 0 ok, 3 clear text, 5 MD5, 10 SASL, 11 continue, 12 final
    std::string_view rest;
};
struct column {
    std::string_view name;
    std::uint32_t table{};
    std::int16_t attribute{};
    std::uint32_t type{};
    std::int16_t type_size{};
    std::int32_t type_modifier{};
    std::int16_t format{};
};

decoded<error_fields> decode_error(std::string_view body);
decoded<parameter_status> decode_parameter_status(std::string_view body);
decoded<backend_key> decode_backend_key(std::string_view body);
decoded<authentication> decode_authentication(std::string_view body);
decoded<transaction_status> decode_ready(std::string_view body);
decoded<std::string_view> decode_command_complete(std::string_view body);
decoded<std::vector<column>> decode_row_description(std::string_view body);
// Whether its columns have these types, in this order; false also where it is malformed.
bool describes(std::string_view row_description, std::span<const std::uint32_t> types);
decoded<std::vector<std::uint32_t>> decode_parameter_description(std::string_view body);
decoded<std::vector<std::optional<std::string_view>>> decode_data_row(std::string_view body);

void append_error(std::string& out, const error_fields& fields, char tag = tag_b::error);
void append_parameter_status(std::string& out, std::string_view name, std::string_view value);
void append_backend_key(std::string& out, std::uint32_t process_id, std::string_view secret);
void append_authentication(std::string& out, std::uint32_t kind, std::string_view rest = {});
void append_ready(std::string& out, transaction_status status);
void append_command_complete(std::string& out, std::string_view tag);
void append_row_description(std::string& out, std::span<const column> columns);
void append_parameter_description(std::string& out, std::span<const std::uint32_t> types);
void append_data_row(std::string& out, std::span<const std::optional<std::string_view>> values);
void append_negotiate(std::string& out,
                      std::uint32_t newest_minor,
                      std::span<const std::string> unknown_options);

}  // namespace hotlane::wire
