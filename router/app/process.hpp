// What the process does with its own kind: signals, core dumps, the service manager.
#pragma once

#include <cstdint>
#include <string_view>

namespace hotlane::app {

// No core dump of ours: memory holds passwords. Also keeps debuggers of the same user out.
void forbid_core_dumps();

// Raises the number of files that may be open to what the system allows, and returns it: the usual
// soft limit of 1024 is used up by 500 clients, and then nothing can be moved or asked any more.
std::uint64_t raise_open_files();

// Blocks the signals that wait_for_signal() returns; call before any thread is started.
void block_signals();
int wait_for_signal();  // SIGTERM, SIGINT, SIGHUP

// From now on the next SIGTERM or SIGINT ends the process at once.
void end_at_next_signal();

// systemd's READY=1, STOPPING=1, RELOADING=1, where NOTIFY_SOCKET is set; else nothing.
void notify_service_manager(std::string_view state);

}  // namespace hotlane::app
