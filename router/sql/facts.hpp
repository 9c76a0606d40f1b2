// What hotlane must know of a statement's text, from the real PostgreSQL parser (libpg_query) with
// a lexical fallback for engine dialect that PostgreSQL refuses (AUTOINCREMENT, ...).
//
// Conservative: what is not certain is said to write, to be unsafe, to be unknown. THREADS: any.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hotlane::sql {

enum class kind : std::uint8_t {
    empty,
    select,
    insert,
    update,
    remove,
    merge,
    copy_in,
    copy_out,
    begin,
    commit,
    rollback,
    savepoint,
    release,
    rollback_to,
    prepare_transaction,
    set,
    set_local,
    reset,
    show,
    ddl,
    prepare,
    execute,
    deallocate,
    deallocate_all,
    discard_all,
    listen,
    unlisten,
    notify,
    declare_cursor,
    declare_cursor_hold,
    fetch,
    close_cursor,
    lock,
    call,
    set_role,
    set_transaction,
    set_session_characteristics,
    explain,
    other
};

struct parameter_change {
    std::string name;                  // lower case; "all" for RESET ALL
    std::string sql;                   // the statement's own text, to be replayed
    std::optional<std::string> value;  // absent: reset to default
    bool local{false};
};

// One statement of a query string.
struct statement {
    kind what{kind::other};
    bool may_write{true};          // could change data (a SELECT of plain columns cannot)
    bool names_isolation{false};   // BEGIN / SET TRANSACTION / characteristics that name a level
    bool single_row_write{false};  // UPDATE/DELETE/INSERT VALUES that reads no row but the one it
                                   // changes (no subquery, join, FROM/USING, INSERT..SELECT)
    bool temporary{false};         // creates a temporary object
    // How the row that is written is known: by literals of the text (`key` is their hash), by
    // parameters, or because the row is new. Anything else: not known.
    enum class keyed : std::uint8_t { unknown, literals, parameters, new_row } key_from{};
    std::uint64_t key{};
    std::vector<std::uint16_t> key_parameters;  // numbers, from 1
    bool takes_advisory_lock{false};            // session-level pg_advisory_lock..., not xact
    // Changes the session in a way that cannot be replayed: set_config with computed or several
    // arguments, LOAD. Pin the session to its link.
    bool changes_session{false};
    // Calls a function that keeps something in the session that is no setting: setseed,
    // dblink_connect.
    bool keeps_session{false};
    // Uses tables and names none of their columns, or changes what tables are: what stands in the
    // place of a fenced table on an engine might not refuse it.
    bool names_no_column{false};
    bool reads_sequence{false};  // currval, lastval: of the session's own nextval
    bool uses_sequence{false};   // nextval, or an INSERT, whose defaults may call it
    bool calls_unknown{false};   // runs code that the text does not show: a function, CALL, DO
    bool chain{false};           // COMMIT/ROLLBACK AND CHAIN
    bool modifies{false};        // has INSERT, UPDATE, DELETE or MERGE in it, or nobody knows
    bool only_table{false};      // no row of a table other than `table` is changed by it
    std::string table;           // written or created table, unquoted; empty: none or several
    std::string name;            // savepoint, SQL-prepared statement, cursor, channel
    std::optional<parameter_change> parameter;  // SET, RESET, set_config
    std::uint32_t begin{};  // byte range in the query text, without the semicolon
    std::uint32_t end{};
};

struct facts {
    bool parsed{false};                 // by PostgreSQL's parser; false: lexical only
    std::vector<statement> statements;  // empty: an empty query
    // Equal for texts that differ only in literals, parameters, white space, comments and the
    // length of literal lists; by tokens, so it works for both dialects. 0: an empty text.
    std::uint64_t fingerprint{};
};

// Never fails: text that nobody understands becomes one statement of kind other that may write.
facts analyze(std::string_view sql);

struct cache_limits {
    std::size_t entries_max{4'096};          // of texts, and of shapes
    std::size_t text_bytes_max{16'384};      // longer ones are analysed and not remembered
    std::size_t total_bytes_max{4'194'304};  // of texts, and of shapes
};
struct cache_counters {
    std::uint64_t hits{};        // this text was known
    std::uint64_t shape_hits{};  // a text that differs only in literals was known
    std::uint64_t misses{};      // analysed
    std::uint64_t too_long{};
    std::size_t entries{};
    std::size_t bytes{};
};

// The same, remembered: at most one parse for each distinct shape, bounded by count and bytes,
// least recently used goes first. Not thread-safe: one cache a thread.
class facts_cache {
  public:
    explicit facts_cache(std::size_t entries_max = 4'096, std::size_t text_bytes_max = 16'384);
    explicit facts_cache(const cache_limits& limits);
    ~facts_cache();
    std::shared_ptr<const facts> get(std::string_view sql);
    cache_counters counters() const;

  private:
    struct implementation;
    std::unique_ptr<implementation> self_;
};

// Where in the text of one DEALLOCATE or EXECUTE its name stands: begin and end.
std::optional<std::pair<std::size_t, std::size_t>> name_position(std::string_view statement);

// Quotes an identifier / a literal for SQL that hotlane writes. The only place that does so.
std::string quote_identifier(std::string_view name);
std::string quote_literal(std::string_view text);

// ---- CREATE TABLE, read for a move (both dialects) ----
// Names are as PostgreSQL would have them: lower case unless quoted, "s.t" if a schema other than
// public is named. The engine keeps the case of the text: written_name.
struct column_definition {
    std::string name;
    std::string type;  // as written
    bool not_null{false};
    bool primary_key{false};
    bool unique{false};
    bool autoincrement{false};  // AUTOINCREMENT, SERIAL, IDENTITY
    std::optional<std::string> default_expression;
    std::vector<std::string> checks;        // expressions
    std::optional<std::string> references;  // text of the REFERENCES clause
    std::optional<std::string> collation;
    std::string written_name;  // as `name`, but in the case of the text also without quotes
};
struct table_definition {
    std::string name;
    bool if_not_exists{false};  // and not dropped before: the table may be older than the text
    bool temporary{false};
    std::vector<column_definition> columns;
    std::vector<std::string> primary_key;           // of a table constraint
    std::vector<std::vector<std::string>> uniques;  // table constraints
    std::vector<std::string> checks;
    std::vector<std::string> foreign_keys;    // text
    std::vector<std::string> not_understood;  // anything else, verbatim
    std::string written_name;  // as `name`, but in the case of the text also without quotes
};
// What a list of DDL statements amounts to, in order: CREATE TABLE, ALTER TABLE (ADD COLUMN, DROP
// COLUMN, RENAME), DROP TABLE, CREATE UNIQUE INDEX. What it cannot follow lands in `not_followed`.
struct schema_definition {
    std::vector<table_definition> tables;
    std::vector<std::string> not_followed;
};
schema_definition read_ddl(const std::vector<std::string>& statements);
// Splits a script at its top-level semicolons (quotes, comments and dollar quotes respected).
std::vector<std::string> split_statements(std::string_view script);

}  // namespace hotlane::sql
