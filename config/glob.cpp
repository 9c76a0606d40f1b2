#include "config/glob.hpp"

namespace hotlane::config {
namespace {

// One walk for both questions: `step(g, c)` says whether the single glob character g takes c. The
// star is retried from its last place only, which is enough for globs and linear in practice.
template <class Step>
bool walk(std::string_view glob, std::string_view text, Step step) noexcept {
    std::size_t g = 0;
    std::size_t t = 0;
    std::size_t star = glob.npos;
    std::size_t from = 0;
    while (t < text.size()) {
        if (g < glob.size() && glob[g] == '*') {
            star = g++;
            from = t;
        } else if (g < glob.size() && step(glob[g], text[t])) {
            ++g;
            ++t;
        } else if (star != glob.npos) {
            g = star + 1;
            t = ++from;
        } else {
            return false;
        }
    }
    while (g < glob.size() && glob[g] == '*')
        ++g;
    return g == glob.size();
}

}  // namespace

bool glob_matches(std::string_view glob, std::string_view text) noexcept {
    if (glob.empty()) return true;
    return walk(glob, text, [](char g, char c) { return g == '?' || g == c; });
}

bool glob_covers(std::string_view wide, std::string_view narrow) noexcept {
    if (wide.empty() || wide == "*") return true;
    if (narrow.empty()) narrow = "*";
    // A star of the narrow glob stands for any text, so only a star of the wide one may take it.
    return walk(wide, narrow, [](char g, char c) {
        if (c == '*') return false;
        return g == '?' || g == c;
    });
}

bool rule_covers(const match_rule& wide, const match_rule& narrow) noexcept {
    return glob_covers(wide.database, narrow.database) && glob_covers(wide.user, narrow.user) &&
           glob_covers(wide.application_name, narrow.application_name);
}

}  // namespace hotlane::config
