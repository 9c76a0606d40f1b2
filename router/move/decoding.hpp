// A slot of PostgreSQL's logical decoding for as long as a copy runs ahead: which rows change.
//
// The slot is TEMPORARY: it belongs to the session of one link. Whatever ends that link (the end of
// the move, kill -9, a lost network, PostgreSQL itself) ends the slot, so that none is left behind
// to fill the disk. It ends with any error in its session too, so nothing that may fail for reasons
// of its own is asked over that link. The publication beside it holds nothing; recovery drops it
// (drop_decoding), and ends the session of a hotlane that hangs.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "router/move/changed_keys.hpp"
#include "router/move/followed_tables.hpp"
#include "router/move/job.hpp"

namespace hotlane::move {

struct decode_limits {
    std::chrono::milliseconds wait{20'000};     // for open transactions and locks, in all
    std::chrono::milliseconds slice{1'000};     // one try; between two an abort is heard
    std::chrono::milliseconds read{600'000};    // one reading of changes, nothing held
    std::uint64_t retained_bytes{1ULL << 30U};  // of WAL that the slot may keep from being removed
    unsigned retained_percent{80};              // of max_slot_wal_keep_size, where it is set
};

class decoding {
  public:
    explicit decoding(active_move& m, decode_limits limits = {});
    ~decoding();
    decoding(const decoding&) = delete;
    decoding& operator=(const decoding&) = delete;

    // Publication and slot. A transaction that commits from now on is either decoded or seen by any
    // later snapshot.
    outcome begin();
    // Reads what was committed meanwhile.
    outcome read_on();
    // Writes a mark to the WAL and reads until it comes: whatever was committed before this call is
    // in the feed.
    outcome read_to_mark();
    // Whether the slot lives, how much WAL it keeps, and whether the tables are those of the plan:
    // one whose rows were written anew counts whole. `schema` is where they are now.
    outcome check(const std::string& schema);
    // A statement waits for a lock of this session.
    answer<bool> somebody_waits_for(int pid);
    // Under the hold: no statement may take longer.
    void set_deadline(std::chrono::milliseconds limit);
    // Drops both; what does not answer is left to recovery.
    void end() noexcept;

    [[nodiscard]] change_feed& feed() { return *feed_; }
    [[nodiscard]] const std::vector<followed_table>& tables() const { return tables_; }
    [[nodiscard]] std::uint64_t retained() const noexcept { return retained_; }

  private:
    outcome publish();
    outcome make_slot();
    outcome wait_for_running();
    outcome read_changes();
    answer<snapshot_view> snapshot_now();
    outcome too_long(std::string_view what);

    active_move& m_;
    decode_limits limits_;
    std::vector<followed_table> tables_;
    std::unique_ptr<change_feed> feed_;
    std::unique_ptr<home_link> link_;
    std::uint64_t marks_{0}, retained_{0};
    steady::time_point begun_{};
};

}  // namespace hotlane::move
