// Any bytes as a configuration: no crash, and what loads prints as a file that loads again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "config/print.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const auto got = hotlane::config::load_text(text, "fuzz.yaml");
    if (!got) {
        if (got.error().problems.empty() || got.error().text.empty()) std::abort();
        return 0;
    }
    if (!hotlane::config::load_text(hotlane::config::print_effective(*got), "printed.yaml")) {
        std::abort();
    }
    return 0;
}
