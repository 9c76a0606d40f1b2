// The copy that runs ahead of the hold on the way back.
//
// `run` (nothing is held): logical decoding (decoding.hpp) names the keys that change. A pass takes
// a REPEATABLE READ snapshot, reads decoding up to a mark written after it, and brings each staged
// table to that snapshot: the first pass as a whole, the later ones by the keys that changed since
// the last. All staged tables are then read back. Passes go on until one is short or no shorter
// than the last, and the pause is forecast from what that one took.
// `settle_held` and `copy_rest` (after the fence): the same once more, from the fenced tables;
// tables that count whole, and those that decoding cannot follow, are copied.
//
// What `verify` proves, without reading every row again:
//   - at one time before the hold every row of every staged table was read back, and count and sum
//     were those of what had been read at PostgreSQL;
//   - since then only our statements committed anything at the engine (its own count of commits),
//     or else all is read back again under the hold;
//   - each of those deleted rows by key, and the engine returned what it deleted, or inserted rows
//     that were read back by key afterwards and had the sums of what was read at PostgreSQL;
//   - so the staged table's count and sum are those that the plan has, which are those of the
//     fenced table: a row whose key did not change since its snapshot is as it was read, and every
//     key that changed was decoded before the mark that was written after the fence.
// What it trusts: that a row which no statement named is still what was read back, and that
// decoding names every change.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "router/move/decoding.hpp"
#include "router/move/job.hpp"
#include "router/move/settle_rows.hpp"

namespace hotlane::move {

struct ahead_limits {
    std::size_t passes_max{30};
    std::chrono::milliseconds all{4 * 3'600'000};  // from the first pass to the hold
    // The engine scans a table for each statement: of 100 million rows for 90 s.
    std::chrono::milliseconds engine_statement{120'000};
    std::chrono::milliseconds look_every{1'000};      // at the slot, the tables, who waits
    std::chrono::milliseconds short_pass{60};         // no need for another one
    std::chrono::milliseconds snapshot_wait{20'000};  // for transactions that decoding saw first
    double shrinks{0.8};  // of the last pass's time: more is no progress
    int yields_max{5};    // statements of the tool that waited for the reading
};

class ahead_back {
  public:
    // `m.changes` has begun.
    explicit ahead_back(active_move& m, ahead_limits limits = {});

    outcome run();
    outcome settle_held();
    outcome copy_rest();
    outcome verify();

  private:
    struct staged_table {
        std::string name;
        bool followed{false};  // else its rows come under the hold
        bool filled{false};    // may have rows
        std::uint64_t row_bytes{64};
        // Of the last settling: what must be read back.
        std::vector<key_values> keys;
        settled_rows settled;
    };
    struct pass_figures {
        std::size_t keys{0}, whole{0};
        std::chrono::milliseconds took{0};
        bool yielded{false};  // it ended early, so that somebody's statement could go on
    };

    outcome first_passes();
    outcome passes();
    outcome forecast(const pass_figures& last);
    outcome pass(pass_figures& out);
    outcome open_reader();
    outcome take_snapshot(pass_figures& out);
    outcome give_way(pass_figures& out);
    outcome bring_up(std::vector<key_set>& changed, pass_figures& out);
    outcome bring_table(std::size_t i, const key_set& changed, const rows_from& from);
    outcome copy_whole(std::size_t i, const rows_from& from);
    outcome settle(std::size_t i, std::vector<key_values> keys, const rows_from& from);
    outcome read_all_back();
    outcome read_back(std::size_t i);
    outcome look_around();
    outcome go_on();
    outcome same_shape();
    [[nodiscard]] outcome rest_fits() const;
    // Nobody else committed anything at the engine since all was read back. False: somebody did, or
    // the engine does not tell.
    tl::expected<bool, refusal> only_ours();
    [[nodiscard]] outcome in_time() const;

    active_move& m_;
    ahead_limits limits_;
    decoding& changes_;
    std::unique_ptr<home_link> reader_;
    int reader_pid_{0}, yields_{0};
    bool gives_way_{false};
    std::vector<staged_table> tables_;
    std::vector<std::size_t> rest_;  // under the hold: copied as a whole
    std::uint64_t commits_{0};       // ours, since `commits_then_`
    std::optional<std::uint64_t> commits_then_;
    std::chrono::milliseconds read_back_took_{0};
    steady::time_point begun_{}, looked_at_{};
};

// What a move back needs while the clients wait: for rows that are copied, and for the rest.
std::chrono::milliseconds held_copy_time(std::uint64_t rows) noexcept;
std::chrono::milliseconds held_move_time(std::size_t tables) noexcept;

}  // namespace hotlane::move
