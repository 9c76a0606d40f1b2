-- What the parity cases find in their database. Owned by app; run by the superuser.
SET ROLE app;
CREATE TABLE kv (id int PRIMARY KEY, v text);
INSERT INTO kv SELECT i, 'value ' || i FROM generate_series(1, 5) i;
CREATE TABLE scratch (id int, v text);
CREATE TABLE checked (n int CHECK (n > 0));
CREATE TABLE child (ref int REFERENCES kv DEFERRABLE INITIALLY DEFERRED);
CREATE SCHEMA other;
CREATE TABLE other.elsewhere (a int);
INSERT INTO other.elsewhere VALUES (1), (2);
CREATE SEQUENCE seq;

CREATE FUNCTION failing(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN n / 0; END $$;
CREATE FUNCTION noisy(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'row %', n; RETURN n; END $$;
CREATE FUNCTION setting(size text) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN PERFORM set_config('work_mem', size, false); RETURN current_setting('work_mem'); END $$;
CREATE FUNCTION zone(name text) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN EXECUTE format('SET TimeZone = %L', name); RETURN current_setting('TimeZone'); END $$;
CREATE FUNCTION own(value text) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN PERFORM set_config('my.own', value, false); RETURN value; END $$;
CREATE FUNCTION leaves(what text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    CASE what WHEN 'temporary' THEN CREATE TEMP TABLE left_behind (n int);
              WHEN 'lock' THEN PERFORM pg_advisory_lock(4713);
              WHEN 'listen' THEN LISTEN heard;
    END CASE; END $$;
CREATE FUNCTION sets_zone() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM set_config('TimeZone', NEW.zone, false); RETURN NEW; END $$;
CREATE TABLE setting_rows (zone text);
CREATE TRIGGER sets BEFORE INSERT ON setting_rows FOR EACH ROW EXECUTE FUNCTION sets_zone();
CREATE PROCEDURE commits(n int) LANGUAGE plpgsql AS
    $$ BEGIN FOR i IN 1..n LOOP INSERT INTO scratch VALUES (i, 'committed'); COMMIT; END LOOP; END $$;

CREATE FUNCTION speak() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'row inserted'; RETURN NEW; END $$;
CREATE TABLE loud (n int);
CREATE TRIGGER speaks BEFORE INSERT ON loud FOR EACH ROW EXECUTE FUNCTION speak();
CREATE TABLE loud_at_commit (n int);
CREATE CONSTRAINT TRIGGER speaks AFTER INSERT ON loud_at_commit DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION speak();
RESET ROLE;
CREATE TABLE secret (n int);
ANALYZE kv;
