// Bytes as a client may send them: first packets and every message that hotlane decodes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "router/wire/message.hpp"

using namespace hotlane::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const auto startup = scan_startup(bytes);
    if (startup.status == scan_status::complete) (void)decode_first_packet(startup.body);
    (void)decode_first_packet(bytes);
    auto rest = bytes;
    for (auto next = scan_frame(rest); next.status == scan_status::complete;
         next = scan_frame(rest)) {
        if (next.header.total_size() > rest.size()) __builtin_trap();
        rest.remove_prefix(next.header.total_size());
        (void)decode_query(next.body);
        (void)decode_parse(next.body);
        (void)decode_bind(next.body);
        (void)decode_bind_head(next.body);
        (void)decode_target(next.body);
        (void)decode_execute(next.body);
    }
    (void)decode_parse(bytes);
    (void)decode_bind(bytes);
    return 0;
}
