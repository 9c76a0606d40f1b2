// Any bytes as messages of logical decoding: no crash, nothing that points outside of the message,
// and a feed that took them still answers.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "router/move/changed_keys.hpp"

namespace {

using namespace hotlane::move;

void must_lie_in(std::string_view whole, std::string_view part) {
    if (part.empty()) return;
    if (part.data() < whole.data() || part.data() + part.size() > whole.data() + whole.size())
        std::abort();
}

void must_lie_in(std::string_view whole, const std::optional<pgoutput::tuple>& row) {
    if (!row) return;
    if (row->size() > pgoutput::columns_max) std::abort();
    for (const auto& f : *row)
        must_lie_in(whole, f.bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    if (const auto event = pgoutput::decode(bytes)) {
        if (const auto* c = std::get_if<pgoutput::change>(&*event)) {
            must_lie_in(bytes, c->before);
            must_lie_in(bytes, c->after);
        }
        if (const auto* m = std::get_if<pgoutput::message>(&*event)) {
            must_lie_in(bytes, m->prefix);
            must_lie_in(bytes, m->content);
        }
    }
    // The first byte says how long the next message is.
    change_feed feed({{1, {"id"}}, {2, {"a", "b"}}}, {4, 64, 8, 4});
    for (auto rest = bytes; !rest.empty();) {
        const auto length = static_cast<unsigned char>(rest.front());
        rest.remove_prefix(1);
        if (!feed.take(rest.substr(0, length))) break;
        rest.remove_prefix(std::min<std::size_t>(length, rest.size()));
    }
    for (const auto& set : feed.take_pass())
        if (set.size() > 5 || (set.whole() && set.size() > 0)) std::abort();
    return 0;
}
