#include "config/error.hpp"

#include <fmt/format.h>

namespace hotlane::config {

std::string render(const problem& p, std::string_view source_line) {
    auto out = fmt::format("{}:{}:{}: {}: ",
                           p.where.file,
                           p.where.line,
                           p.where.column,
                           p.level == severity::error ? "error" : "warning");
    if (!p.path.empty()) out += p.path + ": ";
    out += p.message;
    if (!p.mend.empty()) out += ", " + p.mend;
    out += '\n';
    if (source_line.empty()) return out;
    out += fmt::format("    {}\n    ", source_line);
    // Columns count bytes; the caret stands under the character, and tabs stay tabs.
    for (int i = 0; i + 1 < p.where.column; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const auto c = at < source_line.size() ? static_cast<unsigned char>(source_line[at]) : ' ';
        if (c == '\t') {
            out += '\t';
        } else if ((c & 0xC0U) != 0x80) {
            out += ' ';
        }
    }
    return out + "^\n";
}

}  // namespace hotlane::config
