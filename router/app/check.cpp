#include "router/app/check.hpp"

#include <fmt/format.h>

#include "config/load.hpp"
#include "config/print.hpp"
#include "router/app/ask.hpp"

namespace hotlane::app {

using nlohmann::json;

namespace {

json problems_json(const std::vector<config::problem>& problems) {
    json out = json::array();
    for (const auto& p : problems)
        out.push_back({{"file", p.where.file},
                       {"line", p.where.line},
                       {"column", p.where.column},
                       {"level", p.level == config::severity::error ? "error" : "warning"},
                       {"path", p.path},
                       {"message", p.message},
                       {"mend", p.mend}});
    return out;
}

}  // namespace

int check(const std::string& path, bool effective, format as) {
    const auto read = config::load_file(path);
    if (!read) {
        talk(read.error().text);
        if (as == format::json)
            print_json({{"schema", "hotlane/v1"},
                        {"ok", false},
                        {"problems", problems_json(read.error().problems)}});
        return invalid_config;
    }
    if (!read->text.empty()) talk(read->text);
    if (as == format::json) {
        json out{{"schema", "hotlane/v1"},
                 {"ok", true},
                 {"problems", problems_json(read->warnings)},
                 {"hash", read->value.hash}};
        if (effective) out["effective"] = config::print_effective(*read);
        out["next_steps"] = {"hotlane run --config " + path};
        print_json(out);
    } else if (effective) {
        print(config::print_effective(*read));
    } else {
        print(fmt::format("{}: good ({} tools, {} policies)\n",
                          path,
                          read->value.tools.size(),
                          read->value.policies.size()));
    }
    return ok;
}

}  // namespace hotlane::app
