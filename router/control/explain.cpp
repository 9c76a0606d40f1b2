#include "router/control/explain.hpp"

#include <fmt/format.h>

#include "router/move/sessions.hpp"

namespace hotlane::control {

using nlohmann::json;

namespace {

void add_line(std::string& out, const std::string& line) {
    out += line;
    out += '\n';
}

void add_sampling(std::string& out, const tool_view& tool) {
    const auto& s = tool.sampling;
    if (!s.last_error.empty())
        add_line(out, fmt::format("The counters cannot be read: {}", s.last_error));
    if (!tool.window && s.last_error.empty())
        add_line(out, "A tool without traffic is not sampled: its engine may sleep.");
}

void add_evidence(std::string& out, const tool_view& tool) {
    if (tool.hot_tables.empty()) return;
    std::string line = "Conflicts by table:";
    for (std::size_t i = 0; i < tool.hot_tables.size() && i < 3; ++i) {
        const auto& t = tool.hot_tables[i];
        line += fmt::format("{} {} {:.0f} %", i == 0 ? "" : ",", t.table, t.share * 100);
    }
    add_line(out, line);
    if (!tool.samples.empty()) add_line(out, "For example: " + tool.samples.front());
}

void add_retries(std::string& out, const tool_view& tool) {
    const auto& c = tool.entry->counted;
    const auto count = [&](std::size_t which) {
        return c.retries[which].load(std::memory_order_relaxed);
    };
    const bool on = tool.entry->retry.on.load(std::memory_order_relaxed);
    const auto met = count(0) + count(1) + count(2) + count(3);
    if (!on && met == 0) return;
    add_line(out,
             fmt::format("Lever 1 (retry) is {}: of {} autocommit writes that met a conflict it "
                         "saved {} with {} tries; {} ran out of tries, {} were too large, {} were "
                         "given up.",
                         on ? "on" : "off",
                         met,
                         count(0),
                         c.retry_tries.load(std::memory_order_relaxed),
                         count(1),
                         count(2),
                         count(3)));
}

// Here and on the other sidecars.
void add_after_error(std::string& out, const tool_view& tool) {
    const auto seen = move::after_error_of(*tool.entry);
    if (seen.blocks == 0) return;
    add_line(out,
             fmt::format("{} blocks went on after an error ({}): the engine lets them, PostgreSQL "
                         "refuses everything up to ROLLBACK and commits nothing.",
                         seen.blocks,
                         seen.in_words()));
}

std::string indented(const std::string& text) {
    std::string out = "    ";
    for (const char c : text) {
        out += c;
        if (c == '\n') out += "    ";
    }
    return out;
}

void add_recipes(std::string& out, const tool_view& tool) {
    const auto words = lever2_text(tool);
    if (words.empty()) return;
    add_line(out, "");
    out += words;
    for (const auto& recipe : recipes_json(tool)) {
        add_line(out, "");
        add_line(out,
                 fmt::format("Recipe {}: {}", recipe.value("name", ""), recipe.value("title", "")));
        add_line(out, indented(recipe.value("text", "")));
    }
}

void add_decisions(std::string& out, const json& decisions) {
    if (decisions.empty()) return;
    add_line(out, "");
    add_line(out, "Latest decisions, newest first:");
    for (const auto& made : decisions) {
        add_line(out, "");
        add_line(out, indented(made.value("text", "")));
    }
}

}  // namespace

std::string explain_text(const tool_view& tool, const json& decisions) {
    std::string out;
    const auto& route = *tool.route;
    if (!route.served) add_line(out, fmt::format("Not served: {}", route.reason));
    add_line(out, tool.explain);
    add_line(out, "");
    add_sampling(out, tool);
    add_evidence(out, tool);
    add_retries(out, tool);
    add_after_error(out, tool);
    add_decisions(out, decisions);
    add_recipes(out, tool);
    return out;
}

}  // namespace hotlane::control
