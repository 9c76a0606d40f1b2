// Any text: no crash, ranges in order, and the cache says what a fresh analysis says.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "router/sql/facts.hpp"

namespace sql = hotlane::sql;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static sql::facts_cache cache(64, 4'096);
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const sql::facts fresh = sql::analyze(text);
    std::uint32_t at = 0;
    for (const sql::statement& s : fresh.statements) {
        if (s.begin < at || s.end <= s.begin || s.end > size) std::abort();
        at = s.end;
    }
    const auto known = cache.get(text);
    if (known->fingerprint != fresh.fingerprint) std::abort();
    return 0;
}
