// Frames of protocol v3: where a message begins and ends, without reading what it says.
//
// A regular message is a tag byte, a 4-byte big-endian length that counts itself but not the tag,
// and a body (PostgreSQL manual, "Message Formats"). The first message of a connection has no tag.
// Pure: bytes in, values out. A frame's body points into the caller's buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tl/expected.hpp>

namespace hotlane::wire {

// Why bytes cannot be the protocol. None of these can be repaired: the connection must end.
enum class wire_error {
    bad_length,      // a length below 4, or above the caller's limit
    bad_tag,         // a tag that no message of this direction has
    truncated,       // a field reaches past the end of its message
    trailing_bytes,  // a message is longer than its fields
    bad_startup,     // a first packet that is no startup, SSL, GSS or cancel request
    missing_null,    // a string without its terminating zero
    bad_count,       // a negative or absurd element count
};

std::string_view to_string(wire_error error) noexcept;

inline constexpr std::size_t header_size = 5;                   // tag and length
inline constexpr std::uint32_t startup_size_max = 10'000;       // bytes, as PostgreSQL's own limit
inline constexpr std::uint32_t message_size_max = 0x3fff'ffff;  // bytes, as PostgreSQL's own limit

// What the first five bytes of a message say. `body_size` excludes tag and length word.
struct frame_header {
    char tag{};
    std::uint32_t body_size{};

    [[nodiscard]] std::size_t total_size() const noexcept {
        return header_size + std::size_t{body_size};
    }
};

enum class scan_status { complete, need_more, invalid };

// The result of looking for one message at the start of a buffer.
struct scanned {
    scan_status status{scan_status::need_more};
    frame_header header{};  // valid from five bytes on, also while need_more
    bool has_header{false};
    std::string_view body{};  // complete only; points into the buffer
    wire_error error{};       // invalid only
};

// Looks for one tagged message at the start of `buffer`. Never reads past it.
// `size_max` bounds the body in bytes; a longer one is invalid.
scanned scan_frame(std::string_view buffer, std::uint32_t size_max = message_size_max) noexcept;

// The same for the first packet of a connection, which has no tag (header.tag is 0).
scanned scan_startup(std::string_view buffer) noexcept;

}  // namespace hotlane::wire
