#include "router/move/plan.hpp"

#include <algorithm>

namespace hotlane::move {
namespace {

std::string text(const nlohmann::json& j, const char* key) {
    const auto at = j.find(key);
    return at != j.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::uint64_t number(const nlohmann::json& j, const char* key) {
    const auto at = j.find(key);
    return at != j.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}

nlohmann::json to_json(const table& t) {
    auto columns = nlohmann::json::array();
    for (const auto& c : t.columns) {
        columns.push_back({{"name", c.name}, {"type", std::string(to_string(c.type))}});
        if (c.as != held_as::plain) columns.back()["held_as"] = std::string(to_string(c.as));
    }
    return {{"name", t.name},
            {"columns", std::move(columns)},
            {"key", t.key},
            {"rows", t.rows},
            {"sum", t.sum.hex()}};
}

table table_from_json(const nlohmann::json& j) {
    table out;
    out.name = text(j, "name");
    out.rows = number(j, "rows");
    if (const auto sum = digest_from_hex(text(j, "sum"))) out.sum = *sum;
    for (const auto& c : j.value("columns", nlohmann::json::array())) {
        column col;
        col.name = text(c, "name");
        col.type = value_type_from(text(c, "type")).value_or(value_type::text);
        col.as = held_as_from(text(c, "held_as")).value_or(held_as::plain);
        out.columns.push_back(std::move(col));
    }
    if (j.contains("key") && j["key"].is_array())
        out.key = j["key"].get<std::vector<std::string>>();
    return out;
}

}  // namespace

const column* table::find(const std::string& column_name) const {
    const auto at = std::find_if(
        columns.begin(), columns.end(), [&](const column& c) { return c.name == column_name; });
    return at == columns.end() ? nullptr : &*at;
}

const column* table::identity() const {
    if (key.size() != 1) return nullptr;
    const column* only = find(key[0]);
    return only && only->type == value_type::integer ? only : nullptr;
}

std::vector<value_type> table::types() const {
    std::vector<value_type> out;
    for (const auto& c : columns)
        out.push_back(c.type);
    return out;
}

std::vector<std::string> plan::names() const {
    std::vector<std::string> out;
    for (const auto& t : tables)
        out.push_back(t.name);
    return out;
}

nlohmann::json to_json(const plan& p) {
    auto tables = nlohmann::json::array();
    for (const auto& t : p.tables)
        tables.push_back(to_json(t));
    return {{"schema", p.schema},
            {"role", p.role},
            {"tables", std::move(tables)},
            {"seed", p.seed},
            {"lsn", p.lsn},
            {"strays", p.strays},
            {"notes", p.notes}};
}

plan plan_from_json(const nlohmann::json& j) {
    plan out;
    if (!j.is_object()) return out;
    out.schema = text(j, "schema");
    out.role = text(j, "role");
    out.seed = text(j, "seed");
    out.lsn = text(j, "lsn");
    for (const auto& t : j.value("tables", nlohmann::json::array()))
        out.tables.push_back(table_from_json(t));
    for (const auto& n : j.value("strays", nlohmann::json::array()))
        out.strays.push_back(n.is_number_unsigned() ? n.get<std::uint32_t>() : 0U);
    out.strays.resize(out.tables.size(), 0);
    return out;
}

}  // namespace hotlane::move
