// `hotlane adopt TOOL --home HOME`: what each home has, and what adopting one means.
#include <fmt/format.h>

#include "router/app/ask.hpp"

namespace hotlane::app {

using nlohmann::json;

namespace {

std::string tables_text(const char* what, const json& tables) {
    std::string out;
    for (const auto& t : tables)
        out += fmt::format("{}{} ({} rows)",
                           out.empty() ? "" : ", ",
                           printable(cell(at(t, "name"))),
                           cell(at(t, "rows"), 0));
    return out.empty() ? out : fmt::format("    {:<12}{}\n", what, out);
}

std::string list_text(const char* head, const json& texts) {
    std::string out;
    for (const auto& text : texts)
        out += fmt::format("  {:<18}{}\n", out.empty() ? head : "", printable(cell(text)));
    return out;
}

std::string homes_text(const json& detail) {
    const auto store = at(detail, "store"), postgres = at(detail, "postgres"),
               engine = at(detail, "engine");
    const auto mark = at(postgres, "marker"), hint = at(engine, "hint");
    std::string out;
    out += store.is_object() ? fmt::format("  the store knows: {}, epoch {}\n",
                                           cell(at(store, "home")),
                                           cell(at(store, "epoch"), 0))
                             : "  the store knows nothing\n";
    out += mark.is_object() ? fmt::format("  PostgreSQL: the marker says {}, epoch {}\n",
                                          cell(at(mark, "state")),
                                          cell(at(mark, "epoch"), 0))
                            : "  PostgreSQL: there is no marker\n";
    out += tables_text("tables", at(postgres, "tables"));
    out += tables_text("fenced", at(postgres, "fenced"));
    out += hint.is_object() ? fmt::format("  engine: last heard {}, epoch {}\n",
                                          cell(at(hint, "state")),
                                          cell(at(hint, "epoch"), 0))
                            : "  engine:\n";
    out += tables_text("tables", at(engine, "tables"));
    std::string tombstones;
    for (const auto& name : at(engine, "tombstones"))
        tombstones += (tombstones.empty() ? "" : ", ") + printable(cell(name));
    if (!tombstones.empty()) out += fmt::format("    {:<12}{}\n", "tombstones", tombstones);
    out += tables_text("copies", at(engine, "copies"));
    return out;
}

}  // namespace

int adopt_home(const client_options& with, const std::string& tool, const adopt_options& what) {
    const auto got = ask(with,
                         "POST",
                         tool_path(tool, "adopt"),
                         {{"home", what.home}, {"execute", what.execute}, {"by", operator_name()}});
    if (got.exit != ok) return got.exit;
    const bool would = at(got.body, "would_adopt") == true;
    const bool done = at(got.body, "adopted") == true;
    const auto detail = at(got.body, "detail");
    if (with.as == format::json) {
        print_json(got.body);
    } else {
        if (!what.execute)
            print(fmt::format(
                "dry run: {} would live on {}; nothing was changed\n", printable(tool), what.home));
        print(homes_text(detail));
        print(list_text("it would do:", at(detail, "steps")));
        print(list_text("may be missing:", at(detail, "may_be_missing")));
    }
    for (const auto& refusal : at(got.body, "refusals")) {
        talk(printable(fmt::format(
            "refused: {}: {}", cell(at(refusal, "code")), cell(at(refusal, "message")))));
        const auto mend = cell(at(refusal, "mend"));
        if (mend != "-") talk("  mend: " + printable(mend));
    }
    if (!what.execute) {
        if (would && with.as == format::table) print_next_steps(got.body);
        return would ? ok : refused;
    }
    if (done && with.as == format::table)
        print(fmt::format("{} lives on {} now (epoch {})\n",
                          printable(tool),
                          what.home,
                          cell(at(detail, "new_epoch"), 0)));
    if (!done && would)
        talk("hotlane: not done yet; it waits for: " + printable(cell(at(detail, "waits_for"))));
    return done ? ok : would ? failed : refused;
}

}  // namespace hotlane::app
