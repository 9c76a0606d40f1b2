// Every metric that hotlane exports: name, help, kind, labels. The exposition can name no other,
// the dashboards and alerts are checked against this table (tests/deploy).
//
// Label budget: tool <= tools_exported_max; all others are small enums. Never a user, SQL, address.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace hotlane::metrics {

enum class metric_kind { counter, gauge, histogram };

struct metric_name {
    std::string_view name;
    metric_kind kind;
    std::string_view labels;  // comma-separated
    std::string_view help;
};

namespace names {
using k = metric_kind;
// clang-format off
inline constexpr metric_name build_info{"hotlane_build_info", k::gauge, "version,revision,compiler", "What is running; always 1."};
inline constexpr metric_name tools{"hotlane_tools", k::gauge, "", "Tools that this process knows."};
inline constexpr metric_name tools_not_exported{"hotlane_tools_not_exported", k::gauge, "", "Tools beyond the label budget, which have no series of their own."};

inline constexpr metric_name tool_stage{"hotlane_tool_stage", k::gauge, "tool,stage", "1 for the stage of the runbook in which the tool is."};
inline constexpr metric_name tool_stage_since{"hotlane_tool_stage_timestamp_seconds", k::gauge, "tool", "When the tool entered its stage."};
inline constexpr metric_name tool_verdict{"hotlane_tool_verdict", k::gauge, "tool,verdict", "1 for the verdict of the tool's last proof."};
inline constexpr metric_name tool_diagnosis{"hotlane_tool_diagnosis", k::gauge, "tool,diagnosis", "1 for what the tool suffers from."};
inline constexpr metric_name policy_info{"hotlane_policy_info", k::gauge, "tool,policy,mode", "The policy that decides for the tool; always 1."};

inline constexpr metric_name handoff_ratio{"hotlane_handoff_ratio", k::gauge, "tool", "Writers that had to wait for the lane, of those that asked, last good window. Absent while unknown."};
inline constexpr metric_name mean_wait{"hotlane_mean_wait_seconds", k::gauge, "tool", "Mean time that a waiting writer waited, last good window. Absent while unknown."};
inline constexpr metric_name abort_ratio{"hotlane_abort_ratio", k::gauge, "tool", "Lane acquisitions that came to nothing, last good window. Absent while unknown."};
inline constexpr metric_name conflict_ratio{"hotlane_conflict_ratio", k::gauge, "tool", "Write transactions that ended in a conflict, as seen by the data plane. Absent while unknown."};
inline constexpr metric_name threshold{"hotlane_threshold", k::gauge, "tool,signal,edge", "The policy's thresholds (edge: enter, leave) in the unit of the signal of that name."};
inline constexpr metric_name predicted_handoff_ratio{"hotlane_predicted_handoff_ratio", k::gauge, "tool", "Handoff ratio that the engine would show if the tool came home. Absent while unknown."};
inline constexpr metric_name predicted_conflict_ratio{"hotlane_predicted_conflict_ratio", k::gauge, "tool", "Conflict ratio that the engine would show if the tool came home. Absent while unknown."};
inline constexpr metric_name predicted_lane_use_ratio{"hotlane_predicted_lane_use_ratio", k::gauge, "tool", "Share of the lane that the tool would use if it came home. Absent while unknown."};

inline constexpr metric_name predicted_wait{"hotlane_predicted_mean_wait_seconds", k::gauge, "tool", "Mean wait for the lane that the engine would show if the tool came home. Absent while unknown."};
inline constexpr metric_name foresight_handoff{"hotlane_foresight_handoff_ratio", k::gauge, "tool,what", "Handoff ratio of the last return to the engine: what was predicted, measured, and error (their distance)."};
inline constexpr metric_name foresight_wait{"hotlane_foresight_mean_wait_seconds", k::gauge, "tool,what", "Mean wait of the last return to the engine: what was predicted and measured."};
inline constexpr metric_name foresight_conflict{"hotlane_foresight_conflict_ratio", k::gauge, "tool,what", "Conflict ratio of the last return to the engine: what was predicted and measured."};
inline constexpr metric_name forecast_latency{"hotlane_forecast_latency_seconds", k::gauge, "tool,what", "A write at PostgreSQL around the last move there: what was predicted and measured."};
inline constexpr metric_name forecast_failure{"hotlane_forecast_failure_ratio", k::gauge, "tool,what", "Writes that fail at PostgreSQL around the last move there: what was predicted and measured."};
inline constexpr metric_name foresight_factor{"hotlane_foresight_wait_factor", k::gauge, "tool", "By how much the mean wait after returns exceeded its prediction, tracked; the policy demands that margin of the next return."};
inline constexpr metric_name incident{"hotlane_incident", k::gauge, "tool", "1 while the tool is hot together with others on its storage, so that nothing is decided about it."};
inline constexpr metric_name hold_budget{"hotlane_hold_budget_seconds", k::gauge, "tool,what", "Pauses of moves in 24 hours: used, and limit (rails.hold_budget; absent without one)."};
inline constexpr metric_name lane_time{"hotlane_lane_seconds", k::gauge, "tool", "How long one write of the tool takes the lane, measured. Absent while unknown."};
inline constexpr metric_name commit_time{"hotlane_commit_seconds", k::gauge, "tool", "A commit of the tool that waits for nobody, measured. Absent while unknown."};
inline constexpr metric_name writes_dropped{"hotlane_write_intervals_dropped_total", k::counter, "tool", "Recorded writes that were dropped unseen; their window is not predicted."};

inline constexpr metric_name sessions{"hotlane_sessions", k::gauge, "tool", "Clients that are connected to the tool."};
inline constexpr metric_name held_clients{"hotlane_held_clients", k::gauge, "tool", "Clients that wait between transactions while the tool moves."};
inline constexpr metric_name transactions{"hotlane_transactions_total", k::counter, "tool", "Transactions that ended."};
inline constexpr metric_name write_transactions{"hotlane_write_transactions_total", k::counter, "tool", "Transactions that ended and may have written."};
inline constexpr metric_name conflicts{"hotlane_conflicts_total", k::counter, "tool", "Write transactions that ended in a write conflict."};
inline constexpr metric_name client_errors{"hotlane_client_errors_total", k::counter, "tool", "Errors that clients were told, conflicts included."};
inline constexpr metric_name unknown_outcomes{"hotlane_unknown_outcomes_total", k::counter, "tool", "Transactions of which nobody knows whether they committed (SQLSTATE 08007)."};
inline constexpr metric_name queue_wait{"hotlane_queue_wait_seconds_total", k::counter, "tool", "Time that clients spent in hotlane's own queues."};
inline constexpr metric_name links_open{"hotlane_links_open", k::gauge, "tool", "Links to the home that clients share: lent, idle or being opened."};
inline constexpr metric_name links_lent{"hotlane_links_lent", k::gauge, "tool", "Shared links that serve a transaction, or a session that keeps its link."};
inline constexpr metric_name link_waiters{"hotlane_link_waiters", k::gauge, "tool", "Clients that wait for a shared link."};
inline constexpr metric_name link_waits{"hotlane_link_waits_total", k::counter, "tool", "Transactions that had to wait for a shared link."};
inline constexpr metric_name link_wait{"hotlane_link_wait_seconds_total", k::counter, "tool", "Time that clients waited for a shared link."};
inline constexpr metric_name links_made{"hotlane_links_made_total", k::counter, "tool", "Links to the home that were opened."};
inline constexpr metric_name link_failures{"hotlane_link_failures_total", k::counter, "tool", "Links to the home that could not be opened."};
inline constexpr metric_name links_closed{"hotlane_links_closed_total", k::counter, "tool,reason", "Shared links that were closed: idle, lifetime, route, broken, state (something of a client was left), evicted (for another identity), shutdown."};
inline constexpr metric_name pins{"hotlane_pins_total", k::counter, "tool,reason", "Sessions that can no longer change their link, by what they hold there."};
inline constexpr metric_name after_error_blocks{"hotlane_after_error_blocks_total", k::counter, "tool", "Blocks (BEGIN .. COMMIT) that went on after an error at the engine; PostgreSQL would refuse what follows."};
inline constexpr metric_name after_error{"hotlane_after_error_statements_total", k::counter, "tool,statement", "Statements that did something at the engine after an error in their block."};
inline constexpr metric_name pinned{"hotlane_pinned_sessions", k::gauge, "tool", "Sessions that keep their link."};
inline constexpr metric_name retries{"hotlane_retries_total", k::counter, "tool,outcome", "Statements that met a write conflict under lever 1: recovered, exhausted, too_large, given_up."};
inline constexpr metric_name retry_tries{"hotlane_retry_tries_total", k::counter, "tool", "Tries that lever 1 made."};
inline constexpr metric_name hold{"hotlane_hold_seconds", k::histogram, "tool", "How long a client was held while the tool moved."};

inline constexpr metric_name moves{"hotlane_moves_total", k::counter, "tool,to,outcome", "Moves that ended: done, undone (the tool serves at its old home) or refused."};
inline constexpr metric_name move_info{"hotlane_move_info", k::gauge, "tool,to,phase", "A move that is under way; always 1."};
inline constexpr metric_name move_start{"hotlane_move_start_timestamp_seconds", k::gauge, "tool", "When the move that is under way began."};
inline constexpr metric_name move_phase_start{"hotlane_move_phase_start_timestamp_seconds", k::gauge, "tool", "When the phase that is under way began."};
inline constexpr metric_name fence_left{"hotlane_fence_left", k::gauge, "tool", "1 while a home is fenced though no move is under way."};
inline constexpr metric_name late_write{"hotlane_late_write", k::gauge, "tool", "1 when the old home changed after the tool left it."};
inline constexpr metric_name home_up{"hotlane_home_up", k::gauge, "tool,home", "Whether the home answered when it was asked last. Absent before that."};
inline constexpr metric_name route_info{"hotlane_route_info", k::gauge, "tool,home", "1 for the home where the tool lives, 0 for the other."};
inline constexpr metric_name route_epoch{"hotlane_route_epoch", k::gauge, "tool", "Grows with every change of the tool's home."};
inline constexpr metric_name route_served{"hotlane_route_served", k::gauge, "tool", "0 while clients are turned away because the home is not known for certain."};

inline constexpr metric_name samples{"hotlane_samples_total", k::counter, "tool", "Readings of the home's counters that were tried."};
inline constexpr metric_name sample_errors{"hotlane_sample_errors_total", k::counter, "tool", "Readings that failed."};
inline constexpr metric_name sample_duration{"hotlane_sample_duration_seconds", k::gauge, "tool", "How long the last reading took."};
inline constexpr metric_name sample_at{"hotlane_sample_timestamp_seconds", k::gauge, "tool", "When the last good reading was taken."};
inline constexpr metric_name record_bytes{"hotlane_recorded_bytes_total", k::counter, "", "Bytes written to the recording of samples."};
inline constexpr metric_name record_errors{"hotlane_recording_errors_total", k::counter, "", "Lines that could not be written to the recording."};
inline constexpr metric_name windows{"hotlane_windows_total", k::counter, "tool,quality", "Windows by quality; only good ones prove anything."};

inline constexpr metric_name client_connections{"hotlane_client_connections", k::gauge, "", "Client connections that are open, the console's included."};
inline constexpr metric_name client_connections_total{"hotlane_client_connections_total", k::counter, "", "Client connections that were accepted."};
inline constexpr metric_name limit_hits{"hotlane_limit_hits_total", k::counter, "limit", "How often a limit of the configuration was hit."};
inline constexpr metric_name log_suppressed{"hotlane_log_events_suppressed_total", k::counter, "", "Log events that were counted instead of written."};

inline constexpr metric_name fleet_store_up{"hotlane_fleet_store_up", k::gauge, "", "Whether the fleet's state store can be reached. Absent without a fleet, like all that follow."};
inline constexpr metric_name fleet_leads{"hotlane_fleet_leads", k::gauge, "", "1 at the sidecar that samples, decides and moves for the fleet."};
inline constexpr metric_name fleet_leader_number{"hotlane_fleet_leader_number", k::gauge, "", "Number of the leader that this sidecar knows; grows with every leader."};
inline constexpr metric_name fleet_held_tools{"hotlane_fleet_held_tools", k::gauge, "", "Tools that this sidecar holds for a move."};
inline constexpr metric_name fleet_unconfirmed_tools{"hotlane_fleet_unconfirmed_tools", k::gauge, "", "Tools that are turned away because neither the store nor a marker confirms their home."};
inline constexpr metric_name fleet_store_statements{"hotlane_fleet_store_statements_total", k::counter, "", "Statements that this sidecar's coordination sent to the store."};
inline constexpr metric_name fleet_elections{"hotlane_fleet_elections_total", k::counter, "", "How often this sidecar became the leader."};

inline constexpr metric_name config_ok{"hotlane_config_last_reload_successful", k::gauge, "", "Whether the last reload of the configuration succeeded."};
inline constexpr metric_name config_at{"hotlane_config_last_reload_success_timestamp_seconds", k::gauge, "", "When the configuration was loaded last."};
inline constexpr metric_name config_reloads{"hotlane_config_reloads_total", k::counter, "result", "Reloads of the configuration that were tried."};
inline constexpr metric_name config_info{"hotlane_config_info", k::gauge, "hash", "The configuration in effect; always 1."};

inline constexpr metric_name cpu{"process_cpu_seconds_total", k::counter, "", "User and system CPU time spent."};
inline constexpr metric_name resident{"process_resident_memory_bytes", k::gauge, "", "Resident memory size."};
inline constexpr metric_name virtual_memory{"process_virtual_memory_bytes", k::gauge, "", "Virtual memory size."};
inline constexpr metric_name open_fds{"process_open_fds", k::gauge, "", "Open file descriptors."};
inline constexpr metric_name max_fds{"process_max_fds", k::gauge, "", "Maximum number of open file descriptors."};
inline constexpr metric_name start_time{"process_start_time_seconds", k::gauge, "", "When the process started."};

inline constexpr std::array all{
    build_info, tools, tools_not_exported, tool_stage, tool_stage_since, tool_verdict, tool_diagnosis,
    policy_info, handoff_ratio, mean_wait, abort_ratio, conflict_ratio, threshold,
    predicted_handoff_ratio, predicted_conflict_ratio, predicted_lane_use_ratio,
    predicted_wait, foresight_handoff, foresight_wait, foresight_conflict, forecast_latency,
    forecast_failure, foresight_factor, incident, hold_budget, lane_time,
    commit_time, writes_dropped, sessions,
    held_clients, transactions, write_transactions, conflicts, client_errors, unknown_outcomes,
    queue_wait, links_open, links_lent, link_waiters, link_waits, link_wait, links_made,
    link_failures, links_closed, pins, pinned, after_error_blocks, after_error, retries, retry_tries, hold, moves, move_info, move_start,
    move_phase_start, fence_left, late_write, home_up, route_info, route_epoch, route_served, samples,
    sample_errors, sample_duration, sample_at, windows, record_bytes, record_errors,
    client_connections, client_connections_total, limit_hits, log_suppressed, fleet_store_up, fleet_leads,
    fleet_leader_number, fleet_held_tools, fleet_unconfirmed_tools, fleet_store_statements,
    fleet_elections, config_ok, config_at,
    config_reloads, config_info, cpu, resident, virtual_memory, open_fds, max_fds, start_time};
// clang-format on
}  // namespace names

inline constexpr std::size_t tools_exported_max = 200;

// Upper edges of hotlane_hold_seconds; 2 s and 5 s are the defaults of rails.hold_max and hold.
inline constexpr std::array hold_edges{
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0};

// Label values of limit that are exported from the start: the members of config::limits without
// their unit, and bounds of the process. A name that is not here is exported once it was hit.
inline constexpr std::array limit_names{std::string_view{"client_connections"},
                                        std::string_view{"clients_before_login"},
                                        std::string_view{"login_timeout"},
                                        std::string_view{"connect_timeout"},
                                        std::string_view{"connect_try_timeout"},
                                        std::string_view{"buffer"},
                                        std::string_view{"parsed_message"},
                                        std::string_view{"held_clients"},
                                        std::string_view{"held"},
                                        std::string_view{"hold_max"},
                                        std::string_view{"statements_per_client"},
                                        std::string_view{"parameters_per_client"},
                                        std::string_view{"cancel_in_flight"},
                                        std::string_view{"statements_per_tool"},
                                        std::string_view{"statement_sample"},
                                        std::string_view{"open_files"},
                                        std::string_view{"pool_wait"},
                                        std::string_view{"statements_per_link"},
                                        std::string_view{"other"}};

// Label values of outcome of hotlane_moves_total.
inline constexpr std::array move_outcomes{
    std::string_view{"done"}, std::string_view{"undone"}, std::string_view{"refused"}};

}  // namespace hotlane::metrics
