// Bytes as a home may send them. What decodes must encode to what decodes the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "router/wire/message.hpp"

using namespace hotlane::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    if (const auto fields = decode_error(bytes)) {
        std::string again;
        append_error(again, *fields);
        const auto reread = decode_error(scan_frame(again).body);
        if (!reread || reread->sqlstate != fields->sqlstate || reread->message != fields->message)
            __builtin_trap();
    }
    if (const auto values = decode_data_row(bytes)) {
        std::string again;
        append_data_row(again, *values);
        if (scan_frame(again).body != bytes) __builtin_trap();
    }
    if (const auto columns = decode_row_description(bytes)) {
        std::string again;
        append_row_description(again, *columns);
        if (scan_frame(again).body != bytes) __builtin_trap();
    }
    (void)decode_parameter_description(bytes);
    (void)decode_parameter_status(bytes);
    (void)decode_backend_key(bytes);
    (void)decode_authentication(bytes);
    (void)decode_ready(bytes);
    (void)decode_command_complete(bytes);
    return 0;
}
