// Features of the JDBC driver: PORT DATABASE in, "ok NAME" lines out. Run as a single source file.
import java.io.StringReader;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.util.Properties;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;

public class JdbcFeatures {
    interface Feature {
        void run(Connection c) throws Exception;
    }

    static String url;

    static Connection open(String... pairs) throws SQLException {
        Properties p = new Properties();
        p.setProperty("user", "app");
        for (int i = 0; i < pairs.length; i += 2) p.setProperty(pairs[i], pairs[i + 1]);
        return DriverManager.getConnection(url, p);
    }

    static void check(boolean claim, String what) {
        if (!claim) throw new AssertionError(what);
    }

    static void feature(String name, Feature f, String... pairs) throws Exception {
        try (Connection c = open(pairs)) {
            f.run(c);
        }
        System.out.println("ok " + name);
    }

    static long number(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            check(r.next(), sql);
            return r.getLong(1);
        }
    }

    static String stateOf(Statement s, String sql) throws SQLException {
        try {
            s.execute(sql);
            return "none";
        } catch (SQLException e) {
            return e.getSQLState();
        }
    }

    public static void main(String[] a) throws Exception {
        url = "jdbc:postgresql://127.0.0.1:" + a[0] + "/" + a[1];
        try (Connection c = open()) {
            c.createStatement().execute("DROP TABLE IF EXISTS jdbc_t; CREATE TABLE jdbc_t (id int primary key, v text)");
        }
        feature("server-side statements, named from the fifth run on", JdbcFeatures::prepared);
        feature("server-side statements from the first run on", JdbcFeatures::prepared, "prepareThreshold", "1");
        feature("binary transfer forced", JdbcFeatures::prepared, "prepareThreshold", "-1");
        feature("simple protocol only", JdbcFeatures::savepoints, "preferQueryMode", "simple");
        feature("extended for prepared only", JdbcFeatures::prepared, "preferQueryMode", "extendedForPrepared");
        feature("everything cached", JdbcFeatures::prepared, "preferQueryMode", "extendedCacheEverything");
        feature("copy in the simple protocol", JdbcFeatures::copy, "preferQueryMode", "simple");
        feature("batches", JdbcFeatures::batches);
        feature("batches rewritten", JdbcFeatures::batches, "reWriteBatchedInserts", "true");
        feature("a batch that fails", JdbcFeatures::failingBatch);
        feature("a fetch size in a transaction", JdbcFeatures::fetchSize);
        feature("savepoints", JdbcFeatures::savepoints);
        feature("autosave", JdbcFeatures::autosave, "autosave", "always");
        feature("copy", JdbcFeatures::copy);
        feature("large objects", JdbcFeatures::largeObjects);
        feature("cancel", JdbcFeatures::cancel);
        feature("a query time-out", JdbcFeatures::timeout);
        feature("notifications", JdbcFeatures::notifications);
        feature("metadata", JdbcFeatures::metadata);
        feature("read only and isolation", JdbcFeatures::isolation);
        feature("options at the start", JdbcFeatures::options, "options", "-c work_mem=5MB", "ApplicationName", "jdbc");
        feature("a plan that changes", JdbcFeatures::changingPlan, "prepareThreshold", "1", "autosave", "conservative");
    }

    static void prepared(Connection c) throws Exception {
        String sql = "SELECT CAST(? AS int8) + 1, CAST(? AS text), CAST(? AS bool), CAST(? AS float8)";
        try (PreparedStatement s = c.prepareStatement(sql)) {
            for (int i = 0; i < 12; i++) {
                s.setLong(1, i);
                s.setString(2, "text " + i);
                s.setBoolean(3, i % 2 == 0);
                s.setDouble(4, i / 2.0);
                try (ResultSet r = s.executeQuery()) {
                    check(r.next() && r.getLong(1) == i + 1 && r.getString(2).equals("text " + i)
                        && r.getBoolean(3) == (i % 2 == 0) && r.getDouble(4) == i / 2.0, "row " + i);
                }
            }
        }
        try (PreparedStatement s = c.prepareStatement("SELECT CAST(? AS bytea)")) {
            for (int i = 0; i < 8; i++) {
                s.setBytes(1, new byte[] {0, (byte) 255, (byte) i});
                try (ResultSet r = s.executeQuery()) {
                    check(r.next() && r.getBytes(1)[2] == i, "bytes " + i);
                }
            }
        }
    }

    static void batches(Connection c) throws Exception {
        c.setAutoCommit(false);
        try (PreparedStatement s = c.prepareStatement("INSERT INTO jdbc_t VALUES (?, ?)")) {
            for (int i = 0; i < 500; i++) {
                s.setInt(1, i);
                s.setString(2, "v" + i);
                s.addBatch();
            }
            check(s.executeBatch().length == 500, "batch");
        }
        c.commit();
        check(number(c, "SELECT count(*) FROM jdbc_t") == 500, "count");
        c.createStatement().execute("DELETE FROM jdbc_t");
        c.commit();
    }

    static void failingBatch(Connection c) throws Exception {
        try (PreparedStatement s = c.prepareStatement("INSERT INTO jdbc_t VALUES (?, 'x')")) {
            for (int i : new int[] {1, 2, 1, 3}) {
                s.setInt(1, i);
                s.addBatch();
            }
            s.executeBatch();
            check(false, "it must fail");
        } catch (BatchUpdateException e) {
            check("23505".equals(e.getSQLState()), e.getSQLState());
        }
        check(number(c, "SELECT count(*) FROM jdbc_t") == 0, "one implicit transaction");
    }

    static void fetchSize(Connection c) throws Exception {
        c.setAutoCommit(false);
        try (Statement s = c.createStatement()) {
            s.setFetchSize(37);
            long sum = 0;
            try (ResultSet r = s.executeQuery("SELECT generate_series(1, 1000)")) {
                while (r.next()) sum += r.getLong(1);
            }
            check(sum == 500500, "sum");
        }
        c.commit();
    }

    static void savepoints(Connection c) throws Exception {
        c.setAutoCommit(false);
        Statement s = c.createStatement();
        s.execute("INSERT INTO jdbc_t VALUES (1, 'a')");
        Savepoint p = c.setSavepoint("sp");
        check("23505".equals(stateOf(s, "INSERT INTO jdbc_t VALUES (1, 'b')")), "twice");
        check("25P02".equals(stateOf(s, "SELECT 1")), "aborted");
        c.rollback(p);
        check(number(c, "SELECT count(*) FROM jdbc_t") == 1, "one");
        c.rollback();
    }

    static void autosave(Connection c) throws Exception {
        c.setAutoCommit(false);
        Statement s = c.createStatement();
        s.execute("INSERT INTO jdbc_t VALUES (1, 'a')");
        check("22012".equals(stateOf(s, "SELECT 1/0")), "division");
        check(number(c, "SELECT count(*) FROM jdbc_t") == 1, "goes on");
        c.rollback();
    }

    static void copy(Connection c) throws Exception {
        CopyManager m = c.unwrap(PGConnection.class).getCopyAPI();
        StringBuilder rows = new StringBuilder();
        for (int i = 0; i < 5000; i++) rows.append(i).append("\tv\n");
        check(m.copyIn("COPY jdbc_t FROM STDIN", new StringReader(rows.toString())) == 5000, "in");
        StringWriter out = new StringWriter();
        check(m.copyOut("COPY jdbc_t TO STDOUT", out) == 5000, "out");
        try {
            m.copyIn("COPY jdbc_t FROM STDIN", new StringReader(rows.toString()));
            check(false, "must fail");
        } catch (SQLException e) {
            check("23505".equals(e.getSQLState()), e.getSQLState());
        }
        c.createStatement().execute("DELETE FROM jdbc_t");
    }

    static void largeObjects(Connection c) throws Exception {
        c.setAutoCommit(false);
        LargeObjectManager m = c.unwrap(PGConnection.class).getLargeObjectAPI();
        long oid = m.createLO();
        byte[] much = "0123456789".repeat(30_000).getBytes(StandardCharsets.US_ASCII);
        LargeObject o = m.open(oid, LargeObjectManager.READWRITE);
        o.write(much);
        o.seek(299_990);
        check(new String(o.read(20), StandardCharsets.US_ASCII).equals("0123456789"), "the end");
        check(o.size() == much.length, "size");
        o.close();
        m.delete(oid);
        c.commit();
    }

    static void cancel(Connection c) throws Exception {
        Statement s = c.createStatement();
        Thread t = new Thread(() -> {
            try (Connection other = open()) {
                String seen = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%jdbc cancel%' AND state = 'active'";
                while (number(other, seen) < 2) Thread.onSpinWait();
                s.cancel();
            } catch (SQLException e) {
                throw new IllegalStateException(e);
            }
        });
        t.start();
        check("57014".equals(stateOf(s, "SELECT 'jdbc cancel', pg_sleep(60)")), "cancelled");
        t.join();
        check(number(c, "SELECT 1") == 1, "goes on");
    }

    static void timeout(Connection c) throws Exception {
        Statement s = c.createStatement();
        s.setQueryTimeout(1);
        check("57014".equals(stateOf(s, "SELECT pg_sleep(60)")), "timed out");
        check(number(c, "SELECT 2") == 2, "goes on");
    }

    static void notifications(Connection c) throws Exception {
        c.createStatement().execute("LISTEN jdbc_channel");
        try (Connection other = open()) {
            other.createStatement().execute("NOTIFY jdbc_channel, 'hello'");
        }
        var heard = c.unwrap(PGConnection.class).getNotifications(20_000);
        check(heard != null && heard[0].getParameter().equals("hello"), "heard");
    }

    static void metadata(Connection c) throws Exception {
        try (ResultSet r = c.getMetaData().getColumns(null, "public", "jdbc_t", null)) {
            check(r.next() && r.getString("COLUMN_NAME").equals("id"), "column");
        }
        try (PreparedStatement s = c.prepareStatement("SELECT id, v FROM jdbc_t WHERE id = ?")) {
            check(s.getMetaData().getColumnName(2).equals("v"), "described");
            check(s.getParameterMetaData().getParameterCount() == 1, "parameters");
        }
    }

    static void isolation(Connection c) throws Exception {
        c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        check(c.getTransactionIsolation() == Connection.TRANSACTION_SERIALIZABLE, "level");
        c.setAutoCommit(false);
        c.setReadOnly(true);
        check("25006".equals(stateOf(c.createStatement(), "INSERT INTO jdbc_t VALUES (1)")), "read only");
        c.rollback();
    }

    static void options(Connection c) throws Exception {
        for (int i = 0; i < 2; i++) {
            try (Statement s = c.createStatement();
                    ResultSet r = s.executeQuery("SELECT current_setting('work_mem'), current_setting('application_name')")) {
                check(r.next() && r.getString(1).equals("5MB") && r.getString(2).equals("jdbc"), "options");
            }
            c.createStatement().execute("RESET work_mem");
        }
    }

    static void changingPlan(Connection c) throws Exception {
        try (Connection other = open(); PreparedStatement s = c.prepareStatement("SELECT * FROM jdbc_t")) {
            for (int i = 0; i < 3; i++) s.executeQuery().close();
            other.createStatement().execute("ALTER TABLE jdbc_t ADD w int");
            check(s.executeQuery().getMetaData().getColumnCount() == 3, "the driver prepares again");
            other.createStatement().execute("ALTER TABLE jdbc_t DROP w");
        }
    }
}
