// `hotlane verify TOOL` and `hotlane eject TOOL`: what a look at the homes found.
#include <fmt/format.h>

#include "router/app/ask.hpp"

namespace hotlane::app {

using nlohmann::json;

namespace {

std::string lines(std::string_view head, const json& texts) {
    std::string out;
    for (const auto& text : texts)
        out += fmt::format("{:<10}{}\n", out.empty() ? head : "", printable(cell(text)));
    return out;
}

std::string row_text(const json& row) {
    std::string out = "  " + cell(at(row, "row"));
    if (at(row, "only_at").is_string()) out += fmt::format(" (only {})", cell(at(row, "only_at")));
    std::string columns;
    for (const auto& c : at(row, "columns"))
        columns += (columns.empty() ? "" : ", ") + cell(c);
    if (!columns.empty()) out += fmt::format(" (column {})", columns);
    return printable(out) + "\n";
}

// One table: equal, or how far the tool has written on since the move.
std::string table_text(const json& t, const std::string& move) {
    const auto name = printable(cell(at(t, "name")));
    const auto rows = at(t, "rows");
    std::string out;
    if (at(t, "compared") != true) {
        out = fmt::format("{}: {} rows read\n", name, cell(at(rows, "live"), 0));
    } else if (at(t, "equal") == true) {
        out = fmt::format("{}: {} rows, equal to the copy\n", name, cell(at(rows, "live"), 0));
    } else if (at(t, "complete") != true) {
        out = fmt::format("{}: not all was compared\n", name);
    } else {
        const auto only = at(t, "only");
        out = fmt::format("{}: since move {}: {} rows new, {} gone, {} changed\n",
                          name,
                          move,
                          cell(at(only, "live"), 0),
                          cell(at(only, "kept"), 0),
                          cell(at(t, "changed"), 0));
    }
    for (const auto& row : at(t, "rows_shown"))
        out += row_text(row);
    for (const auto& bad : at(t, "bad_values"))
        out += "  " + printable(cell(bad)) + "\n";
    return out;
}

}  // namespace

int verify_tool(const client_options& with, const std::string& tool) {
    const auto got = ask(with, "POST", tool_path(tool, "verify"), {{"by", operator_name()}});
    if (got.exit != ok) return got.exit;
    const bool is_good = at(got.body, "good") == true;
    if (with.as == format::json) {
        print_json(got.body);
        return is_good ? ok : failed;
    }
    std::string out = fmt::format("{} lives on {} (epoch {})\n",
                                  printable(tool),
                                  cell(at(got.body, "home")),
                                  cell(at(got.body, "epoch"), 0));
    for (const auto& t : at(got.body, "tables"))
        out += table_text(t, cell(at(got.body, "move")));
    out += lines("note", at(got.body, "notes"));
    print(out);
    for (const auto& problem : at(got.body, "problems"))
        talk("PROBLEM: " + printable(cell(problem)));
    if (is_good) print("verified\n");
    return is_good ? ok : failed;
}

int eject_tool(const client_options& with, const std::string& tool) {
    const auto got = ask(with, "GET", tool_path(tool, "eject"));
    if (got.exit != ok) return got.exit;
    const json& how = got.body;
    if (at(how, "problems").size() > 0) {
        if (with.as == format::json) print_json(how);
        for (const auto& problem : at(how, "problems"))
            talk("refused: " + printable(cell(problem)));
        return refused;
    }
    if (with.as == format::json) {
        print_json(how);
        return ok;
    }
    std::string out = fmt::format("How to run {} without hotlane; nothing was changed.\n\n", tool);
    out += fmt::format("{:<10}{}\n", "home", cell(at(how, "home")));
    for (const char* name : {"dsn", "role", "password", "in_schema", "search_path"})
        if (const auto text = cell(at(how, name)); text != "-")
            out += fmt::format("{:<12}{}\n", name, printable(text));
    for (const auto& i : at(how, "identities"))
        out += fmt::format("{:<12}{}.{}: {} at {}{}, highest {}\n",
                           "numbers",
                           cell(at(i, "table")),
                           cell(at(i, "column")),
                           cell(at(i, "sequence")),
                           cell(at(i, "last_value")),
                           at(i, "is_called") == true ? "" : " (not used yet)",
                           cell(at(i, "max_in_table")));
    int number = 0;
    out += "\n";
    for (const auto& step : at(how, "steps"))
        out += fmt::format("{}. {}\n", ++number, printable(cell(step)));
    for (const auto& s : at(how, "set_before"))
        out += fmt::format("   {}\n     because {}\n", cell(at(s, "sql")), cell(at(s, "why")));
    out += "\ndrops, later:\n";
    for (const auto& d : at(how, "drops"))
        out += fmt::format("  {:<10}{};\n", cell(at(d, "at")), printable(cell(at(d, "sql"))));
    out += "\n" + lines("note", at(how, "notes"));
    print(out);
    return ok;
}

}  // namespace hotlane::app
