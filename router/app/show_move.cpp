// `hotlane moves ID`: one move as its journal has it.
#include <fmt/format.h>

#include "router/app/ask.hpp"

namespace hotlane::app {

using nlohmann::json;

namespace {

std::string line(std::string_view name, const std::string& value) {
    return fmt::format("{:<14}{}\n", name, printable(value));
}

// A list of texts under one name; nothing if it is empty.
std::string listed(std::string_view name, const json& texts) {
    std::string out;
    for (const auto& text : texts)
        out += line(out.empty() ? name : "", cell(text));
    return out;
}

// What the statements of lately said to the other home.
std::string rehearsal_text(const json& rehearsal) {
    if (!rehearsal.is_object()) return {};
    std::string out = line("rehearsal",
                           fmt::format("{} texts seen, {} statements rehearsed, {} definitions",
                                       cell(at(rehearsal, "seen"), 0),
                                       cell(at(rehearsal, "rehearsed"), 0),
                                       cell(at(rehearsal, "definitions"), 0)));
    out += listed("  refused", at(rehearsal, "refused"));
    out += listed("  not parsed", at(rehearsal, "definitions_refused"));
    out += listed("  both refuse", at(rehearsal, "refused_by_both"));
    out += listed("  elsewhere", at(rehearsal, "elsewhere"));
    out += listed("  not tried", at(rehearsal, "not_rehearsed"));
    for (const auto& d : at(rehearsal, "differences"))
        out += line("  type",
                    fmt::format("{}: {} was {}, will be {}",
                                cell(at(d, "statement")),
                                cell(at(d, "what")),
                                cell(at(d, "was")),
                                cell(at(d, "will_be"))));
    if (at(rehearsal, "more").is_number())
        out += line("  more", cell(at(rehearsal, "more"), 0) + " that are not listed");
    if (at(rehearsal, "left_for_time").is_number())
        out += line("  no time for", cell(at(rehearsal, "left_for_time"), 0) + " statements");
    return out;
}

std::string tables_text(const json& tables) {
    std::string out;
    for (const auto& t : tables)
        out += line(out.empty() ? "tables" : "",
                    fmt::format("{} ({} rows)", cell(at(t, "name")), cell(at(t, "rows"), 0)));
    return out;
}

// Phase and when it began, in milliseconds since the move did.
std::string phases_text(const json& phases) {
    std::string out;
    if (!phases.is_object()) return out;
    for (const auto& [name, begun] : phases.items())
        out += fmt::format("{}{} at {} ms", out.empty() ? "" : ", ", name, cell(begun, 0));
    return out.empty() ? out : line("phases", out);
}

// What a copy that ran ahead of the hold came to know.
std::string ahead_text(const json& ahead) {
    if (!ahead.is_object()) return {};
    std::string changed;
    for (const auto& name : at(ahead, "changed"))
        changed += (changed.empty() ? "" : ", ") + cell(name);
    return line("copied ahead",
                fmt::format("{} passes, {} commits seen{}; written to meanwhile: {}",
                            cell(at(ahead, "passes"), 0),
                            cell(at(ahead, "commits_seen"), 0),
                            at(ahead, "all_seen") == true ? "" : " and others that were not",
                            changed.empty() ? "nothing" : changed));
}

// The rule behind it, where a decision of the runbook led to it.
std::string decision_text(const json& decision) {
    if (!decision.is_object()) return {};
    return fmt::format(" (decision {}: {}, rule {} at {})",
                       cell(at(decision, "id"), 0),
                       cell(at(decision, "event")),
                       cell(at(decision, "rule")),
                       cell(at(decision, "where")));
}

}  // namespace

// What a running move does now: rows, rate, what is left, and what it waits for.
std::string doing_text(const json& order) {
    std::string out = cell(at(order, "phase"));
    if (const auto doing = cell(at(order, "doing")); doing != "-") {
        out += fmt::format("; {}: {}", doing, cell(at(order, "rows"), 0));
        if (at(order, "of_rows").is_number())
            out += fmt::format(" of {}", cell(at(order, "of_rows"), 0));
        out += " rows";
        if (at(order, "rows_per_s").is_number())
            out += fmt::format(", {} rows/s", cell(at(order, "rows_per_s"), 0));
        if (at(order, "rest_s").is_number())
            out += fmt::format(", {} s left", cell(at(order, "rest_s"), 1));
    }
    if (const auto waits = cell(at(order, "waits_for")); waits != "-")
        out += "; waits for " + waits;
    return out;
}

// Each change is one line; a terminal shows the same. Ends with the move, or never without one.
int watch_moves(const client_options& with, const std::string& id) {
    std::string shown;
    while (true) {
        const auto got = ask(with, "GET", "moves?limit=20&wait=1");
        if (got.exit != ok) return got.exit;
        json now = json::array();
        for (const auto& order : at(got.body, "orders"))
            if (id.empty() || at(order, "move") == id) now.push_back(order);
        std::string text;
        for (const auto& order : now)
            text += fmt::format("{:<13} {} -> {}, ordered by {}: {}\n",
                                cell(at(order, "move")),
                                printable(cell(at(order, "tool"))),
                                cell(at(order, "to")),
                                printable(cell(at(order, "ordered_by"))),
                                printable(doing_text(order)));
        if (text.empty()) text = "no move is under way\n";
        if (text != shown) print(with.as == format::json ? now.dump() + "\n" : text);
        shown = text;
        if (!id.empty() && now.empty()) return show_move(with, id);
    }
}

int show_move(const client_options& with, const std::string& id) {
    const auto got = ask(with, "GET", "moves/" + id);
    if (got.exit != ok) return got.exit;
    const json& move = got.body;
    if (with.as == format::json) {
        print_json(move);
        return ok;
    }
    const auto plan = at(move, "plan");
    const auto detail = at(plan, "detail");
    std::string out = line("move", cell(at(move, "id")));
    out += line("tool", cell(at(move, "tool")));
    out += line("homes", fmt::format("{} -> {}", cell(at(move, "from")), cell(at(move, "to"))));
    out += line("ordered by", cell(at(move, "ordered_by")) + decision_text(at(move, "decision")));
    out += line("started", moment(at(move, "started_at")));
    out += line("phase", cell(at(move, "phase")));
    out += line("outcome", cell(at(move, "outcome")));
    if (at(move, "order").is_object()) out += line("now", doing_text(at(move, "order")));
    if (cell(at(move, "reason")) != "-") out += line("reason", cell(at(move, "reason")));
    out += line("held", cell(at(move, "held_ms"), 0) + " ms");
    out += phases_text(at(detail, "phases"));
    out += ahead_text(at(detail, "ahead"));
    out += tables_text(at(plan, "tables"));
    out += listed("notes", at(plan, "notes"));
    out += rehearsal_text(at(detail, "rehearsal"));
    if (at(move, "reverse").is_string()) out += line("to undo it", cell(at(move, "reverse")));
    print(out);
    return ok;
}

}  // namespace hotlane::app
