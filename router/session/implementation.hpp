// The parts of one session, private to this folder. Each group of functions has a file of its own:
//
//   startup.cpp      the client's first packets, up to the link
//   link.cpp         opening a link of the session's own, retries
//   lending.cpp      borrowing one from a pool for a transaction, giving it back
//   prepared.cpp     prepared statements on borrowed links
//   aftermath.cpp    what a transaction left on a borrowed link though no text says so
//   replay.cpp       giving a new link the state that the client believes in
//   client_side.cpp  messages of the client
//   extended.cpp     Parse, Bind, Describe, Close, Execute, Sync and COPY of the client
//   home_side.cpp    messages of the home
//   errors.cpp       its errors: what the client is told, what it skips
//   effects.cpp      what a statement did once it has succeeded
//   boundary.cpp     where transactions begin and end: gate, route, hold
//   isolation.cpp    rule 9: at which level a transaction begins
//   retry.cpp        lever 1: what ended in a write conflict is sent again
//   fenced.cpp       answers that only a home gives that the tool has left
//   failure.cpp      losses, and what may have been committed
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "router/session/limits.hpp"
#include "router/session/login.hpp"
#include "router/session/outbox.hpp"
#include "router/session/owed.hpp"
#include "router/session/retry_state.hpp"
#include "router/session/session.hpp"
#include "router/session/statements.hpp"
#include "router/session/tally.hpp"
#include "router/session/texts.hpp"
#include "router/session/tracked.hpp"
#include "router/wire/message.hpp"

namespace hotlane::session {

enum class phase : std::uint8_t { first_packet, first_link, relaying, ended };
// opening, login, retrying: of a link of its own; wanted: one is to be borrowed.
enum class link_phase : std::uint8_t { none, opening, login, retrying, wanted, replaying, ready };
// What the session knows of the transaction state after everything it has sent.
enum class forecast : std::uint8_t { idle, in_block, unsure };
enum class verdict : std::uint8_t { taken, wait };
enum class passage : std::uint8_t { go, wait, refused };
// Whether a borrowed link has a statement as the client knows it.
enum class footing : std::uint8_t { firm, asked, changed };

// One frame of the client, perhaps not all of it yet.
struct client_frame {
    char tag{};
    std::string_view at_hand;  // header and what has come of the body
    std::string_view rest;     // from this frame on, everything at hand
    std::size_t total{};       // header and body
    bool complete{false};

    [[nodiscard]] std::string_view body() const noexcept {
        return at_hand.substr(wire::header_size);
    }
};

// Whether a statement could leave something behind at the home (transaction control cannot).
[[nodiscard]] bool writes_data(const sql::statement& statement) noexcept;
[[nodiscard]] bool ends_block(sql::kind what) noexcept;  // COMMIT, ROLLBACK
[[nodiscard]] bool is_continuation(char tag) noexcept;   // begins no transaction: COPY data, Flush
[[nodiscard]] std::uint64_t next_session_number() noexcept;  // on this thread
// Under this name a SET SESSION CHARACTERISTICS is remembered.
inline constexpr std::string_view characteristics_key = "session characteristics";
// No client can have prepared this; using it makes the home fail the batch in its own way.
inline constexpr std::string_view nobodys_statement = "hotlane: result type changed";
// Clients share borrowed links, so their statements have names of ours there.
[[nodiscard]] std::string link_name(const statement_text& text);
[[nodiscard]] std::shared_ptr<const std::string> said(const refusal& why);  // as an ErrorResponse
types_ptr columns_of(char tag, std::string_view body);
// `known` if it says the same: a statement is described again and again.
types_ptr columns_of(char tag, std::string_view body, const types_ptr& known);
void append_renamed(std::string& out,
                    const client_frame& frame,
                    const wire::bind_head& head,
                    std::string_view name);

class session::implementation {
  public:
    implementation(environment& env, const bounds& limits, bool client_is_local)
        : env_(env),
          limits_(limits),
          client_is_local_(client_is_local),
          state_(limits.parameters) {}

    // ---- session.cpp ----
    void client_bytes(std::string_view bytes);
    void client_eof();
    void link_bytes(std::string_view bytes);
    void timer_fired(timer which);
    void act(action what);
    void pump();  // takes what can be taken of the queued client bytes
    void settle() {
        to_client_.settle();
        to_link_.settle();
    }
    [[nodiscard]] bool wants_client() const noexcept;
    [[nodiscard]] bool wants_link() const noexcept;

    // ---- startup.cpp ----
    std::size_t take_first_packets(std::string_view bytes);
    void refuse_startup_bytes(std::string_view packet);
    void take_startup(const wire::startup_message& message);
    bool note_startup_parameters(const wire::startup_message& message);
    void greet(const pairs_ptr& status, std::string_view notices);  // the client is in

    // ---- link.cpp ----
    void start_link();
    void link_opened();
    void link_failed(std::string_view why);
    void login_bytes(std::string_view bytes);
    void login_ready();
    void retry_link(std::string_view why);
    void give_up_link(const refusal& why);
    void link_is_ready();
    void drop_link(bool polite);

    // ---- lending.cpp ----
    [[nodiscard]] bool is_pooled() const noexcept { return tool_.pool == pooling::transaction; }
    void want_link();
    void link_lent(link_memory& link);
    void link_refused(const refusal& why, std::string_view words);
    bool send_parameters();
    bool reads_sequence(const client_frame& frame);
    void count_pin();
    void return_link();
    bool cancel_queued();

    // ---- prepared.cpp ----
    footing ensure(const std::shared_ptr<prepared>& statement);
    void ask_for(const std::shared_ptr<prepared>& statement);
    bool waits_for_statement(const client_frame& frame);
    bool waits_for_names(const client_frame& frame);
    bool waits_for_answers();  // true
    bool refuse_parse(std::string_view body);
    void take_pooled_parse(const client_frame& frame, owed entry);
    std::string name_at_link(const prepared* statement, std::string_view name);
    void close_at_link(const client_frame& frame, const prepared* statement, std::string_view name);
    void ensured_reply(char tag, std::string_view body);
    void undo_skipped(const owed& entry);
    void note_stale_statement(const wire::error_fields& fields);
    void hide_close(std::string_view name, std::shared_ptr<const statement_text> text);
    std::string renamed_drop(const sql::facts& facts, std::string_view sql);
    void note_execute(prepared& statement);
    bool follow_execute(prepared& statement);
    std::string prepare_nothing();
    std::string prepare_for_query(const prepared& statement);
    std::string renamed_query(const sql::facts& facts, std::string_view sql);

    // ---- aftermath.cpp ----
    void suspect(const sql::facts* facts);
    bool ask_aftermath();
    void aftermath_reply(char tag, std::string_view body);

    // ---- replay.cpp ----
    void start_replay();
    void replay_reply(char tag, std::string_view body);
    void settle_status();
    void note_syntax(std::string_view name, std::string_view value);
    bool note_status(std::string_view name, std::string_view value);  // true: news to the client

    // ---- client_side.cpp ----
    std::size_t take_client(std::string_view bytes);
    verdict take_frame(const client_frame& frame);
    verdict take_message(const client_frame& frame);
    bool check_frame(const client_frame& frame);
    void broken_client(std::string_view why);
    bool needs_all(const client_frame& frame) const;
    bool discard_refused(const client_frame& frame);
    void pass(const client_frame& frame);
    void take_query(const client_frame& frame);
    void take_function_call(const client_frame& frame);
    void terminate();
    std::shared_ptr<const sql::facts> facts_of(std::string_view sql);
    void note_sent(const sql::facts* facts, std::string_view sql, bool alone);
    void note_write(const sql::statement& statement, std::string_view sql);
    [[nodiscard]] std::uint64_t row_key_of(const sql::statement& statement);
    void note_bound_key(const prepared* statement, std::string_view rest);

    // ---- extended.cpp ----
    bool take_extended(const client_frame& frame);  // false: the session has ended
    void take_parse(const client_frame& frame);
    void take_bind(const client_frame& frame);
    void take_target(const client_frame& frame);
    void take_execute(const client_frame& frame);
    void take_sync(const client_frame& frame);
    void take_copy(const client_frame& frame);
    bool remember(std::string_view body, owed& entry);
    void keep_statement(const std::shared_ptr<prepared>& statement);
    void expect_again();
    void set_portal(std::string_view name, const std::shared_ptr<prepared>& statement);
    std::shared_ptr<prepared> portal(std::string_view name) const;
    void poison(owed entry, char tag);
    std::shared_ptr<const std::string> standing_refusal(const prepared& statement) const;

    // ---- home_side.cpp ----
    std::size_t take_home(std::string_view bytes);
    bool take_home_message(const wire::scanned& frame, std::string_view whole);
    bool streams(char tag) const noexcept;
    void take_reply(char tag, std::string_view body, std::string_view whole);
    void take_ready(std::string_view body, std::string_view whole);
    void take_error(std::string_view body, std::string_view whole);
    void give(const owed& entry, std::string_view whole);
    void give_error(wire::error_fields& fields, std::string_view whole);
    void skip_to_sync();
    void note_after_error(std::string_view tag);
    void forget_block() { changed_ = failed_once_ = went_on_ = false; }
    void copy_in_opened();
    void note_description(char tag, std::string_view body);
    void take_idle_error(std::string_view body, std::string_view whole);
    void pop_copy_ends();

    // ---- effects.cpp ----
    void command_complete(std::string_view tag);
    void statement_done(const sql::facts& facts,
                        std::string_view sql,
                        std::span<const std::uint32_t> parameters);
    void succeeded(const sql::statement& statement, std::string_view sql, std::string_view tag);
    void parameter_set(const sql::statement& statement, std::string_view sql);
    void note_pins(const sql::statement& statement);
    void commit_state();
    void clear_statements();

    // ---- boundary.cpp ----
    passage begin(const client_frame& frame);
    passage pass_route();
    passage refuse(const client_frame& frame, const refusal& why);
    passage next_in_pipeline(const client_frame& frame);
    void released();
    void hold_failed(std::string_view why);
    [[nodiscard]] bool at_boundary() const noexcept;
    void after_home();  // is the transaction over? Then the next may begin
    void end_transaction();
    void leave_gate();
    void route_changed();
    void shut_down();

    // ---- isolation.cpp ----
    void set_isolation(const client_frame& frame);
    void restore_unnamed(const client_frame& frame);
    std::optional<level> level_for(const client_frame& frame);
    std::optional<level> level_for_query(const sql::facts& facts) const;
    std::optional<level> level_for_batch(std::string_view bytes);
    void note_isolation(const sql::statement& statement);
    void note_startup_isolation();
    [[nodiscard]] bool client_sets_level() const;

    // ---- failure.cpp ----
    void link_lost(std::string_view why);
    void lost_before_use(std::string_view why);
    bool answer_loss(const refusal& why);
    void forget_transaction();
    void broken_home(std::string_view why);
    void fatal(const refusal& why);
    void end(bool polite_to_link = false);
    [[nodiscard]] bool may_have_committed() const;
    [[nodiscard]] bool query_may_commit(const owed& entry, bool& block) const;
    [[nodiscard]] bool execute_may_commit(const owed& entry, bool& block, bool& pending) const;

    // ---- retry.cpp ----
    void consider_retry(const client_frame& frame, const sql::facts* facts);
    void retry_goes_on(const client_frame& frame, owed& entry);
    // A message that cannot be part of it came in the middle.
    void drop_unfinished_retry() {
        if (again_ && again_->active && !again_->complete) drop_retry(false);
    }
    void keep_for_retry(const owed& entry, std::string_view bytes, const client_frame& frame);
    void drop_retry(bool too_large);
    [[nodiscard]] bool keeps_back(const owed& entry) const noexcept;
    void keep_back(std::string_view bytes);
    [[nodiscard]] bool is_conflict(const wire::error_fields& fields) const;
    bool try_again(const wire::error_fields& fields, std::string_view whole);
    bool retry_ready();
    void send_again();
    void end_pause(std::string_view error);
    [[nodiscard]] bool pauses() const noexcept {
        return again_ && again_->active && again_->waiting;
    }

    // ---- fenced.cpp ----
    [[nodiscard]] bool withholds(const sql::facts* facts) const;
    void withhold_query(const client_frame& frame);
    void withhold_execute(owed entry);
    [[nodiscard]] bool tells_of_fence(const wire::error_fields& fields) const;
    bool give_fence(const wire::error_fields& fields);
    void begin_anew();

    // ---- surroundings ----
    environment& env_;
    const std::uint64_t number_{next_session_number()};
    const bounds limits_;
    const bool client_is_local_;
    time_point now_{};  // of the event being handled
    std::vector<action> actions_;
    outbox to_client_;
    outbox to_link_;

    // ---- the client ----
    phase phase_{phase::first_packet};
    std::string inbox_;             // client bytes not yet taken
    std::size_t client_rest_{0};    // of a message that is passing in parts
    bool client_discards_{false};   // that message is not passed but thrown away
    bool client_eof_{false};        // it will send no more
    bool terminated_{false};        // it said so; whatever follows is no message
    bool frame_incomplete_{false};  // the queued bytes are less than one message
    int ssl_requests_{0}, gss_requests_{0};
    std::shared_ptr<const link_identity> identity_;
    tool_facts tool_;
    bool shutting_down_{false};
    std::optional<refusal> parting_;  // it broke the protocol: told behind the replies it is owed

    // ---- the link ----
    link_phase link_{link_phase::none};
    policy::home_kind link_kind_{policy::home_kind::engine};
    std::uint64_t link_generation_{0};
    std::string link_inbox_;
    std::size_t link_rest_{0};
    bool link_swallows_{false};  // the message that is coming in parts is hidden
    std::unique_ptr<link_login> login_;
    link_memory* lent_{nullptr};  // the borrowed link's
    int link_tries_{0};           // borrowed links that broke before they could be used
    link_key key_;
    std::optional<time_point> link_deadline_;
    std::string retry_reason_;  // why the last try failed
    pairs_ptr told_status_;     // to the client
    pairs_ptr link_status_;     // by the link
    pin pin_counted_{pin::none};
    bool unread_{false};                   // the unnamed statement is one too long to be read
    footing footing_{footing::firm};       // of the statement that the message at hand names
    bool flushed_{false};                  // nothing was sent since the last Flush of ours
    bool reads_wrong_{false};              // standard_conforming_strings is off
    bool asks_aftermath_{false};           // before the link goes back
    std::vector<std::uint64_t> suspects_;  // the statements that may have left something there

    // ---- the transaction ----
    bool inside_{false};  // the gate
    bool begun_{false};   // and the link is right: messages flow
    bool held_{false};
    std::optional<refusal> refusal_;  // what the queued first message is to be told
    bool refusing_{false};            // an extended batch was refused: discard up to Sync
    int cancels_{0};
    owed_queue owed_;
    wire::transaction_status status_{wire::transaction_status::idle};
    bool in_block_{false};           // as far as replies tell, also between two ReadyForQuery
    bool unsynced_{false};           // extended messages sent since the last Sync
    bool skipping_{false};           // the home skips to a Sync that the client has not sent yet
    bool copy_in_{false};            // the home waits for CopyData
    bool committed_unready_{false};  // a COMMIT was done whose ReadyForQuery has not come
    bool implicit_wrote_{false};     // an executed write waits for the Sync that commits it
    forecast forecast_{forecast::idle};
    bool leaving_{false};        // the timer of a pinned session runs
    bool statements_go_{false};  // a DEALLOCATE ALL or DISCARD ALL is on its way
    int pipelined_{0};           // transactions sent in this pass through the gate
    bool wrote_{false}, conflict_{false}, unknown_{false};
    int errors_{0};
    std::string table_, sample_;
    bool block_{false};           // of several statements
    bool changed_{false};         // inside a block: something was written, says the home
    bool failed_once_{false};     // ... and something failed, and nothing was rolled back since
    bool went_on_{false};         // ... and the block went on
    int writes_{0};               // statements that may have written
    std::uint64_t row_key_{0};    // of the row of the only write
    std::uint64_t bound_key_{0};  // of the row that the unnamed portal would write
    std::uint64_t new_rows_{0};   // each is a key of its own

    write_tally tally_;  // of this pass through the gate

    // ---- lever 1 ----
    std::unique_ptr<retry_state> again_;
    std::uint64_t left_generation_{0};  // of the link on which it did so last
    int begun_anew_{0};                 // times that one transaction found its tool gone
    bool ran_{false};                   // an Execute of the batch that is open was sent
    bool again_missed_{false};          // it would be sent again, were it not too long
    int retried_{0};                    // tries of this transaction that the client does not see

    // ---- the session's state ----
    tracked_state state_;
    statement_memory statements_;
    std::vector<std::pair<std::string, std::shared_ptr<prepared>>> portals_;
    std::shared_ptr<prepared> unnamed_portal_;
    std::vector<std::string> ddl_;
    level link_level_{level::unknown};
    bool startup_level_{false};    // the client's startup packet sets its own isolation
    bool level_in_flight_{false};  // a statement that may change the default level was sent

    struct {
        const char* at{nullptr};
        std::size_t size{0};
        std::shared_ptr<const sql::facts> facts;
    } memo_;  // the statement looked at last, in the caller's buffer
};

}  // namespace hotlane::session
