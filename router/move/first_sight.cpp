#include "router/move/first_sight.hpp"

#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

#include "router/move/engine_home.hpp"
#include "router/move/names.hpp"

namespace hotlane::move {
namespace {

constexpr std::string_view document_kind = "first_sight";

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
        return static_cast<char>(std::tolower(c));
    });
    return text;
}

// nullopt: the engine does not answer.
std::optional<nlohmann::json> tables_of_engine(context& with) {
    auto engine = with.homes.open(policy::home_kind::engine, with.limit.connect);
    if (!engine) return std::nullopt;
    (*engine)->set_deadline(with.limit.statement);
    const auto catalog = read_engine_catalog(**engine);
    if (!catalog) return std::nullopt;
    auto names = nlohmann::json::array();
    for (const auto& [name, columns] : *catalog)
        if (!is_own_name(name)) names.push_back(lower(name));
    return names;
}

}  // namespace

void note_first_sight(context& with) {
    auto& store = with.around.store;
    const std::string& tool = with.tool.name;
    const auto known = store.document(std::string(document_kind), tool);
    if (!known || *known) return;
    const auto passed = store.ddl(tool);
    if (!passed || !passed->empty()) return;
    // Not stored: the next look finds more tables older than they are, never fewer.
    if (const auto names = tables_of_engine(with))
        static_cast<void>(store.put_document(
            std::string(document_kind), tool, nlohmann::json{{"tables", *names}}));
}

older_tables read_first_sight(placement::store& store, const std::string& tool) {
    const auto known = store.document(std::string(document_kind), tool);
    if (!known || !*known) return std::nullopt;
    std::set<std::string> names;
    const auto tables = (*known)->find("tables");
    if (tables == (*known)->end() || !tables->is_array()) return std::nullopt;
    for (const auto& name : *tables)
        if (name.is_string()) names.insert(name.get<std::string>());
    return names;
}

}  // namespace hotlane::move
