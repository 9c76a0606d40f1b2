// What the process's exit status means. Stable: scripts rely on it.
#pragma once

namespace hotlane::app {

enum exit_code : int {
    ok = 0,
    failed = 1,          // while running
    usage = 2,           // the command line is wrong
    invalid_config = 3,  //
    cannot_bind = 4,     // an address or socket is taken
    unreachable = 5,     // no hotlane answers at the admin socket
    refused = 6,         // a guard said no; nothing was changed
};

}  // namespace hotlane::app
