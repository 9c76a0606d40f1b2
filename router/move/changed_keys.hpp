// Which rows changed since a table was copied: the keys that logical decoding names, nothing else.
// Replaying a change that the copy already has is harmless, because the row is read anew. PURE.
//
// A pass brings a copy to one snapshot S of PostgreSQL. Decoding shows a transaction once its
// COMMIT is in the WAL; snapshots see it a moment later (with synchronous standbys: any time
// later). So a row read in S may be older than a change that was already decoded. Such a change is
// kept for the next pass (`later`), and S is refused as long as it misses a transaction whose
// changes an earlier reading had put among those of this pass.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <tl/expected.hpp>

#include "router/move/pgoutput.hpp"

namespace hotlane::move {

struct key_limits {
    std::size_t keys_max{500'000};             // of one table; above it counts whole
    std::size_t bytes_max{64U * 1024 * 1024};  // of all keys together; likewise
    std::size_t transactions_max{1'000'000};   // not yet seen by a snapshot; above: an error
    std::size_t relations_max{10'000};         // described by one slot; above: an error
};

// The values of one key, as PostgreSQL prints them.
using key_values = std::vector<std::string>;

// What changed of one table.
class key_set {
  public:
    void add(const std::vector<std::string_view>& key);
    void add_all(const key_set& other);
    void count_whole();
    [[nodiscard]] bool whole() const noexcept { return whole_; }
    [[nodiscard]] bool empty() const noexcept { return !whole_ && keys_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return keys_.size(); }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::vector<key_values> keys() const;

  private:
    bool whole_{false};
    std::unordered_set<std::string> keys_;  // each value with its length before it
    std::size_t bytes_{0};
};

// pg_current_snapshot() as text: xmin:xmax:xip,xip...
class snapshot_view {
  public:
    static tl::expected<snapshot_view, std::string> read(std::string_view text);
    // By the low 32 bits, as decoding names a transaction; right for any of the last 2 thousand
    // million.
    [[nodiscard]] bool sees(std::uint32_t xid) const noexcept;
    // Who ran when it was taken.
    [[nodiscard]] const std::vector<std::uint32_t>& running() const noexcept { return running_; }

  private:
    std::uint32_t next_{};
    std::vector<std::uint32_t> running_;
};

struct watched_table {
    std::uint32_t oid{};
    std::vector<std::string> key;  // names of its columns
};

class change_feed {
  public:
    // Changes of tables that are not watched are passed over.
    explicit change_feed(std::vector<watched_table> tables, key_limits limits = {});

    // One message of the stream, in its order. An error ends the feed: what changed is not known.
    tl::expected<void, std::string> take(std::string_view bytes);

    // From here on what `s` does not see is kept for later. False: `s` misses a transaction that is
    // among those of this pass already; take a newer one.
    bool read_at(const snapshot_view& s);
    // What `s` sees needs not be remembered by its number any more.
    void forget_seen(const snapshot_view& s);
    // The changes of this pass, by the tables' order. What was kept for later comes next.
    std::vector<key_set> take_pass();
    void count_whole(std::size_t table);  // whatever decoding says
    // Of a pass that did not come so far: they are among those of the next one.
    void put_back(std::size_t table, const key_set& changes);
    [[nodiscard]] const key_set& now(std::size_t table) const { return now_[table]; }

    // The last message that was emitted with this prefix.
    [[nodiscard]] const std::string& mark() const noexcept { return mark_; }
    static constexpr std::string_view prefix = "hotlane";

  private:
    struct described {
        bool watched{false};
        std::size_t table{};
        std::vector<std::size_t> key;  // where the key's columns are in a row
    };
    struct handler;

    tl::expected<void, std::string> describe(const pgoutput::relation& r);
    tl::expected<void, std::string> change(const pgoutput::change& c);
    void truncate(const pgoutput::truncate& t);
    void add_row(const described& d, const pgoutput::tuple& row, const pgoutput::tuple* before);
    std::vector<key_set>& open_sets() { return later_open_ ? later_ : now_; }
    void bound(std::vector<key_set>& sets, std::size_t table);

    std::vector<watched_table> tables_;
    key_limits limits_;
    std::map<std::uint32_t, described> relations_;
    std::vector<key_set> now_, later_;
    std::unordered_set<std::uint32_t> now_xids_, later_xids_;
    bool has_snapshot_{false};
    snapshot_view snapshot_;
    bool in_transaction_{false}, later_open_{false}, touched_{false};
    std::uint32_t xid_{};
    std::string mark_;
};

}  // namespace hotlane::move
