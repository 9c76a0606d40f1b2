#include "router/wire/frame.hpp"

#include "router/wire/bytes.hpp"

namespace hotlane::wire {

std::string_view to_string(wire_error error) noexcept {
    switch (error) {
        case wire_error::bad_length:
            return "message length out of bounds";
        case wire_error::bad_tag:
            return "unknown message tag";
        case wire_error::truncated:
            return "message shorter than its fields";
        case wire_error::trailing_bytes:
            return "message longer than its fields";
        case wire_error::bad_startup:
            return "not a PostgreSQL startup packet";
        case wire_error::missing_null:
            return "string without terminating zero";
        case wire_error::bad_count:
            return "element count out of bounds";
    }
    return "unknown protocol error";
}

namespace {

scanned refuse(wire_error error) noexcept {
    return {.status = scan_status::invalid, .error = error};
}

scanned with_body(std::string_view buffer, std::size_t head, frame_header header) noexcept {
    scanned result{.status = scan_status::need_more, .header = header, .has_header = true};
    if (buffer.size() - head >= header.body_size) {
        result.status = scan_status::complete;
        result.body = buffer.substr(head, header.body_size);
    }
    return result;
}

}  // namespace

scanned scan_frame(std::string_view buffer, std::uint32_t size_max) noexcept {
    if (buffer.size() < header_size) return {};
    const std::uint32_t length = load_u32(buffer.data() + 1);
    if (length < 4 || length - 4 > size_max) return refuse(wire_error::bad_length);
    return with_body(buffer, header_size, {.tag = buffer[0], .body_size = length - 4});
}

scanned scan_startup(std::string_view buffer) noexcept {
    if (buffer.size() < 4) return {};
    const std::uint32_t length = load_u32(buffer.data());
    if (length < 8 || length > startup_size_max) return refuse(wire_error::bad_length);
    return with_body(buffer, 4, {.tag = 0, .body_size = length - 4});
}

}  // namespace hotlane::wire
