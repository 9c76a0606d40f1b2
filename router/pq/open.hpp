// Opens connections of libpq, each within a deadline, to servers that are not trusted: a password
// goes to them in clear text over TLS only, whatever they ask and however they send it.
// Counters, the state store and moves connect through here.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

struct pg_conn;

namespace hotlane::pq {

using clock = std::chrono::steady_clock;

struct finish {
    void operator()(pg_conn* c) const noexcept;
};
using connection = std::unique_ptr<pg_conn, finish>;

struct open_error {
    enum class kind {
        unreachable,
        timed_out,
        clear_text,  // it asked for the password in clear text, without TLS
    } why{kind::unreachable};
    std::string what;  // one line; never a secret
};

// Keywords of libpq and their values. Of two with one keyword the later one holds.
using settings = std::vector<std::pair<const char*, std::string>>;
// What `dbname` is: a name, or a connection string whose settings hold from its place on.
enum class dbname { is_name, may_be_dsn };

// An open connection that does not block, without a printer of notices. Blocks until `until` at
// most, but for the look-up of a host's name, where `hostaddr` does not save it.
tl::expected<connection, open_error> open(const settings& with,
                                          dbname what,
                                          clock::time_point until);

// Until the socket can do what `events` (of poll) says. False: the deadline passed.
bool wait_for(int socket, short events, clock::time_point until);

// What libpq says of the connection, without line ends.
std::string said(const pg_conn* c);

}  // namespace hotlane::pq
