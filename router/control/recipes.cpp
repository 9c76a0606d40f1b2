#include <fmt/format.h>

#include "router/control/explain.hpp"
#include "router/levers/recipes.hpp"

namespace hotlane::control {

using nlohmann::json;

// From the newest sample of the hot table; without a sample there is nothing to say for certain.
json recipes_json(const tool_view& tool) {
    const bool is_hot_row = tool.state.why == policy::diagnosis::hot_row;
    if (!is_hot_row || tool.samples.empty()) return json::array();
    levers::hot_spot spot;
    spot.table = tool.state.table;
    spot.statement = tool.samples.front();
    const auto advice = levers::advise(spot);
    json out = json::array();
    for (const auto& recipe : advice.recipes)
        out.push_back({{"name", recipe.name},
                       {"title", recipe.title},
                       {"why", recipe.why},
                       {"text", levers::text_of(recipe)}});
    return out;
}

std::string lever2_text(const tool_view& tool) {
    const bool is_hot_row = tool.state.why == policy::diagnosis::hot_row;
    if (!is_hot_row || tool.samples.empty()) return {};
    levers::hot_spot spot;
    spot.table = tool.state.table;
    spot.statement = tool.samples.front();
    const auto advice = levers::advise(spot);
    return fmt::format("Lever 2: the hot write is {}: {}\n{}\n",
                       levers::text_of(advice.write.what),
                       advice.write.reason,
                       advice.next);
}

}  // namespace hotlane::control
