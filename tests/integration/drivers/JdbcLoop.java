// One JDBC connection that asks by a server-side statement until its stdin ends: PORT DATABASE in, the number of
// answers out.
import java.sql.*;

public class JdbcLoop {
    public static void main(String[] a) throws Exception {
        String url = "jdbc:postgresql://127.0.0.1:" + a[0] + "/" + a[1] + "?user=app&prepareThreshold=1";
        try (Connection c = DriverManager.getConnection(url);
                PreparedStatement s = c.prepareStatement("SELECT v FROM t WHERE id = ?")) {
            for (int answers = 0; System.in.available() == 0; ) {
                s.setLong(1, 1 + answers % 3);
                try (ResultSet r = s.executeQuery()) {
                    if (!r.next() || !r.getString(1).equals("value " + (1 + answers % 3)))
                        throw new AssertionError("answer " + answers);
                }
                if (++answers % 50 == 0) System.out.println(answers);
            }
        }
    }
}
