#include "router/move/fence_sql.hpp"

#include <fmt/format.h>

#include "router/sql/facts.hpp"

namespace hotlane::move {
namespace {

std::string literal(const std::string& text) {
    return sql::quote_literal(text);
}

}  // namespace

std::string_view is_tool_table() noexcept {
    // Ordinary tables; what an extension brought is the extension's.
    return "c.relkind = 'r' AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = "
           "'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')";
}

// SQL texts keep their own lines.
// clang-format off
std::string fence_functions_sql() {
    return R"(/* hotlane: fence functions */
CREATE OR REPLACE FUNCTION hotlane.refuse_write() RETURNS trigger LANGUAGE plpgsql AS $f$
BEGIN
  RAISE EXCEPTION USING ERRCODE = '55000',
    MESSAGE = format('table %I is fenced: tool %s has left this server (move %s)',
                     TG_TABLE_NAME, TG_ARGV[0], TG_ARGV[1]),
    HINT = 'Connect through hotlane; it knows where the tool lives.';
END $f$;
CREATE OR REPLACE FUNCTION hotlane.refuse_read(tool text, move text) RETURNS SETOF boolean
LANGUAGE plpgsql VOLATILE ROWS 1 AS $f$
BEGIN
  RAISE EXCEPTION USING ERRCODE = '55000',
    MESSAGE = format('tool %s has left this server (move %s)', tool, move),
    HINT = 'Connect through hotlane; it knows where the tool lives.';
END $f$;
GRANT USAGE ON SCHEMA hotlane TO PUBLIC)";
}

std::string fence_sql(const std::string& schema,
                      const std::string& fenced,
                      const std::string& tool,
                      const std::string& move) {
    return fmt::format(R"(/* hotlane: fence */ DO $do$
DECLARE
  r record; cols text; s text := {schema}; f text := {fenced}; t text := {tool}; m text := {move};
BEGIN
  FOR r IN SELECT c.oid, c.relname, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = s AND c.relkind IN ('r', 'v')
        AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
                        AND d.objid = c.oid AND d.deptype = 'e')
        AND coalesce(obj_description(c.oid, 'pg_class'), '') NOT LIKE 'hotlane fence %'
      ORDER BY c.relkind, c.relname LOOP
    -- Rows come from the raising function, so that no condition can be decided without calling it.
    SELECT string_agg(format('CASE WHEN refused THEN NULL::%s END AS %I', format_type(a.atttypid, a.atttypmod), a.attname), ', '
                      ORDER BY a.attnum) INTO cols
      FROM pg_attribute a WHERE a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped;
    IF r.relkind = 'r' THEN
      EXECUTE format('CREATE TRIGGER hotlane_fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %I.%I '
                     'FOR EACH STATEMENT EXECUTE FUNCTION hotlane.refuse_write(%L, %L)', s, r.relname, t, m);
      EXECUTE format('ALTER TABLE %I.%I ENABLE ALWAYS TRIGGER hotlane_fence', s, r.relname);
      EXECUTE format('ALTER TABLE %I.%I SET SCHEMA %I', s, r.relname, f);
    ELSE
      EXECUTE format('ALTER VIEW %I.%I SET SCHEMA %I', s, r.relname, f);
    END IF;
    EXECUTE format('CREATE VIEW %I.%I AS SELECT %s FROM hotlane.refuse_read(%L, %L) AS refused',
                   s, r.relname, cols, t, m);
    EXECUTE format('CREATE TRIGGER hotlane_fence INSTEAD OF INSERT OR UPDATE OR DELETE ON %I.%I '
                   'FOR EACH ROW EXECUTE FUNCTION hotlane.refuse_write(%L, %L)', s, r.relname, t, m);
    EXECUTE format('CREATE TRIGGER hotlane_fence_all BEFORE INSERT OR UPDATE OR DELETE ON %I.%I '
                   'FOR EACH STATEMENT EXECUTE FUNCTION hotlane.refuse_write(%L, %L)', s, r.relname, t, m);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I.%I TO PUBLIC', s, r.relname);
    EXECUTE format('COMMENT ON VIEW %I.%I IS %L', s, r.relname, 'hotlane fence ' || m);
  END LOOP;
END $do$)",
                       fmt::arg("schema", literal(schema)),
                       fmt::arg("fenced", literal(fenced)),
                       fmt::arg("tool", literal(tool)),
                       fmt::arg("move", literal(move)));
}

std::string unfence_sql(const std::string& schema, const std::string& fenced) {
    return fmt::format(R"(/* hotlane: unfence */ DO $do$
DECLARE r record; s text := {schema}; f text := {fenced};
BEGIN
  FOR r IN SELECT c.oid, c.relname, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = f AND c.relkind IN ('r', 'v') ORDER BY c.relkind, c.relname LOOP
    IF EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = s AND c.relname = r.relname AND c.relkind = 'v'
                 AND obj_description(c.oid, 'pg_class') LIKE 'hotlane fence %') THEN
      EXECUTE format('DROP VIEW %I.%I', s, r.relname);
    END IF;
    IF r.relkind = 'r' THEN
      EXECUTE format('DROP TRIGGER IF EXISTS hotlane_fence ON %I.%I', f, r.relname);
      EXECUTE format('ALTER TABLE %I.%I SET SCHEMA %I', f, r.relname, s);
    ELSE
      EXECUTE format('ALTER VIEW %I.%I SET SCHEMA %I', f, r.relname, s);
    END IF;
  END LOOP;
  EXECUTE format('DROP SCHEMA IF EXISTS %I', f);
END $do$)",
                       fmt::arg("schema", literal(schema)),
                       fmt::arg("fenced", literal(fenced)));
}

std::string drop_fence_views_sql(const std::string& schema) {
    return fmt::format(R"(/* hotlane: drop fence views */ DO $do$
DECLARE r record; s text := {schema};
BEGIN
  FOR r IN SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = s AND c.relkind = 'v'
        AND obj_description(c.oid, 'pg_class') LIKE 'hotlane fence %' LOOP
    EXECUTE format('DROP VIEW %I.%I', s, r.relname);
  END LOOP;
END $do$)",
                       fmt::arg("schema", literal(schema)));
}

std::string tables_sql(const std::string& schema) {
    return fmt::format("/* hotlane: tables */ SELECT c.relname FROM pg_class c JOIN pg_namespace n "
                       "ON n.oid = c.relnamespace WHERE n.nspname = {} AND {} ORDER BY 1",
                       literal(schema),
                       is_tool_table());
}

std::string shape_sql(const std::string& schema) {
    return fmt::format(
        R"(/* hotlane: shape */ SELECT md5(coalesce(string_agg(x, '|' ORDER BY x), '')) FROM (
  SELECT 'c ' || c.relname || ' ' || a.attnum || ' ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
         || ' ' || a.attnotnull::text || a.attidentity::text || a.attgenerated::text
         || coalesce(pg_get_expr(d.adbin, d.adrelid), '') AS x
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
   WHERE n.nspname = {schema} AND {table}
  UNION ALL
  SELECT 'k ' || c.relname || ' ' || k.conname || ' ' || pg_get_constraintdef(k.oid)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_constraint k ON k.conrelid = c.oid
   WHERE n.nspname = {schema} AND {table}
  UNION ALL
  SELECT 'i ' || pg_get_indexdef(i.indexrelid)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_index i ON i.indrelid = c.oid
   WHERE n.nspname = {schema} AND i.indisunique AND {table}) AS shape)",
        fmt::arg("schema", literal(schema)),
        fmt::arg("table", is_tool_table()));
}
// clang-format on

}  // namespace hotlane::move
