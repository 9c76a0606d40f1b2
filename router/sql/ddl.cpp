// What a list of DDL statements amounts to, in order.
#include <algorithm>
#include <array>
#include <set>

#include "router/sql/ddl_change.hpp"

namespace hotlane::sql {
namespace {

// Statements that leave the schema as it is.
constexpr std::array no_ddl = std::to_array<std::string_view>(
    {"select", "insert",  "update",    "delete",  "replace",  "values", "begin", "start",
     "commit", "end",     "savepoint", "release", "set",      "reset",  "show",  "pragma",
     "vacuum", "analyze", "explain",   "comment", "truncate", "copy"});

class follower {
  public:
    schema_definition run(const std::vector<std::string>& statements) {
        for (const std::string& text : statements)
            for (const std::string& one : split_statements(text))
                if (!follow(one)) doubts_.push_back({one, subject_of(one)});
        for (auto& each : doubts_)
            out_.not_followed.push_back(std::move(each.text));
        return std::move(out_);
    }

  private:
    // A statement that was not followed, and the table or view that it is about, if only one.
    struct doubt {
        std::string text;
        std::string subject;
    };

    static std::string subject_of(const std::string& text) {
        cursor at(text);
        if (!at.is_sound()) return {};
        const bool altered = at.skip({"alter"});
        if (!altered && !at.skip({"create"})) return {};
        at.skip({"or", "replace"});
        if (at.is_any({"temp", "temporary", "unlogged"})) at.next();
        if (!at.skip({"table"}) && !at.skip({"view"})) return {};
        if (!at.skip({"if", "not", "exists"})) at.skip({"if", "exists"});
        at.skip({"only"});
        const auto name = read_name(at).name;
        return altered && at.is("rename") ? std::string{} : name;  // it may bear another name now
    }

    // What was in doubt about a table or view is settled when that is gone.
    void settle(const std::string& name) {
        std::erase_if(doubts_, [&](const doubt& d) { return d.subject == name; });
    }

    bool drop_views(cursor& at) {
        at.skip({"if", "exists"});
        do {
            const auto name = read_name(at).name;
            if (name.empty()) return false;
            settle(name);
        } while (at.skip(lexeme::comma));
        if (at.is_any({"cascade", "restrict"})) at.next();
        return at.at_end();
    }

    bool follow(const std::string& text) {
        cursor at(text);
        if (at.at_end()) return true;
        if (!at.is_sound()) return false;
        if (at.skip({"create"})) return create(at, text);
        if (at.skip({"alter", "table"})) return alter_table(at, out_);
        if (at.skip({"drop", "table"})) return drop_tables(at);
        if (at.skip({"drop", "view"})) return drop_views(at);
        if (at.skip({"drop", "index"})) return drop_index(at);
        return std::any_of(
            no_ddl.begin(), no_ddl.end(), [&](std::string_view word) { return at.is(word); });
    }

    bool create(cursor& at, const std::string& text) {
        if (at.is("index") || (at.is("unique") && at.is("index", 1))) return create_index(at, text);
        auto table = read_create_table(at);
        if (!table) return false;
        if (const table_definition* known = find_table(out_, table->name)) {
            // Refused by the home, or seen twice.
            return table->if_not_exists || same_columns(*known, *table);
        }
        if (gone_.count(table->name) != 0) table->if_not_exists = false;  // it surely made it
        out_.tables.push_back(std::move(*table));
        return true;
    }

    static bool same_columns(const table_definition& a, const table_definition& b) {
        return std::equal(a.columns.begin(),
                          a.columns.end(),
                          b.columns.begin(),
                          b.columns.end(),
                          [](const column_definition& x, const column_definition& y) {
                              return x.name == y.name && x.type == y.type;
                          });
    }

    struct index {
        std::string name;
        std::string table;
        std::vector<std::string> columns;  // of a unique one that was understood
        std::string not_understood;        // of a unique one that was not
    };

    bool create_index(cursor& at, const std::string& text) {
        index made;
        const bool unique = at.skip({"unique"});
        at.skip({"index"});
        at.skip({"concurrently"});
        const bool if_not_exists = at.skip({"if", "not", "exists"});
        if (!at.is("on")) made.name = read_name(at).name;
        if (!at.skip({"on"})) return false;
        at.skip({"only"});
        made.table = read_name(at).name;
        if (if_not_exists && find_index(made.name) != indexes_.end()) return true;
        if (!unique) {
            indexes_.push_back(made);
            return true;
        }
        table_definition* table = find_table(out_, made.table);
        if (table == nullptr) return false;
        if (at.skip({"using"})) at.next();
        if (read_column_list(at, made.columns) && at.at_end()) {
            table->uniques.push_back(made.columns);
        } else {
            made.columns.clear();
            made.not_understood = text;
            table->not_understood.push_back(text);
        }
        indexes_.push_back(std::move(made));
        return true;
    }

    std::vector<index>::iterator find_index(const std::string& name) {
        return std::find_if(indexes_.begin(), indexes_.end(), [&](const index& i) {
            return !name.empty() && i.name == name;
        });
    }

    bool drop_index(cursor& at) {
        at.skip({"concurrently"});
        at.skip({"if", "exists"});
        const auto found = find_index(read_name(at).name);
        if (found == indexes_.end() || !at.at_end()) return false;
        if (table_definition* table = find_table(out_, found->table)) {
            remove_one(table->uniques, found->columns);
            remove_one(table->not_understood, found->not_understood);
        }
        indexes_.erase(found);
        return true;
    }

    template <typename Item>
    static void remove_one(std::vector<Item>& items, const Item& item) {
        if (item.empty()) return;
        const auto at = std::find(items.begin(), items.end(), item);
        if (at != items.end()) items.erase(at);
    }

    bool drop_tables(cursor& at) {
        at.skip({"if", "exists"});
        do {
            const std::string name = read_name(at).name;
            if (name.empty()) return false;
            std::erase_if(out_.tables, [&](const table_definition& t) { return t.name == name; });
            std::erase_if(indexes_, [&](const index& i) { return i.table == name; });
            drop_references(out_, name);
            settle(name);
            gone_.insert(name);
        } while (at.skip(lexeme::comma));
        if (at.is_any({"cascade", "restrict"})) at.next();
        return at.at_end();
    }

    schema_definition out_;
    std::vector<doubt> doubts_;
    std::set<std::string> gone_;  // dropped at some time
    std::vector<index> indexes_;
};

}  // namespace

table_definition* find_table(schema_definition& schema, std::string_view name) {
    const auto at = std::find_if(schema.tables.begin(),
                                 schema.tables.end(),
                                 [&](const table_definition& t) { return t.name == name; });
    return at == schema.tables.end() ? nullptr : &*at;
}

schema_definition read_ddl(const std::vector<std::string>& statements) {
    return follower().run(statements);
}

}  // namespace hotlane::sql
