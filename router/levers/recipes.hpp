// Lever 2 as text: may the hot row of a statement be split, and if so, how, step by step. Pure. The
// recipes are advice for the people who own the application: hotlane does not rewrite statements,
// since a split changes what every reader of the column has to do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hotlane::levers {

enum class write_class : unsigned char {
    commuting_counter,  // SET n = n + 5 WHERE key = ..: may be split
    guarded,            // depends on the value it changes: one guarded row is needed (lever 3)
    overwrites,         // the last writer wins: splitting cannot help, retrying can (lever 1)
    unknown
};
std::string_view text_of(write_class what);

struct hot_write {
    write_class what{write_class::unknown};
    std::string reason;  // one sentence, for people
    std::string table;
    std::vector<std::string> keys;
    std::string counter;  // of a commuting counter: the column and what is added
    std::string amount;
    bool upsert{false};
};
hot_write classify(std::string_view statement);

struct hot_spot {
    std::string table;
    std::vector<std::string> keys;       // empty: those of the statement
    std::vector<std::string> key_types;  // as declared; missing: BIGINT
    std::string counter;                 // empty: that of the statement
    std::string statement;               // a sample of what makes the row hot
    unsigned slots{16};
};

struct step {
    std::string what;         // for people
    std::string sql;          // for the engine; empty: nothing to run
    std::string on_postgres;  // where PostgreSQL needs another text
};
struct recipe {
    std::string name;  // sharded_counter, event_log
    std::string title;
    std::string why;
    std::vector<step> set_up;
    std::vector<step> application;  // what replaces the hot statement and the reads of the column
    std::vector<step> regularly;    // the fold; all of a step's statements in one transaction
    step check;                     // every row that it returns is a mistake
    std::vector<step> undo;
    std::vector<std::string> notes;
};
struct advice {
    hot_write write;
    bool can_be_sharded{false};
    std::string next;  // what to do, in one sentence
    std::vector<recipe> recipes;
};
advice advise(const hot_spot& spot);

// All steps as one commented text, ready to be read in a terminal or pasted.
std::string text_of(const recipe& recipe);

}  // namespace hotlane::levers
