// What is kept of a statement that may be sent again: after a write conflict (retry.cpp), or at
// another home (fenced.cpp).
#pragma once

#include <string>
#include <vector>

#include "router/session/environment.hpp"
#include "router/session/owed.hpp"
#include "router/session/session.hpp"

namespace hotlane::session {

struct retry_state {
    bool active{false};
    bool complete{false};  // its last message was sent
    bool failed{false};    // this try ended in a conflict
    bool waiting{false};   // for the next one
    bool lever{false};     // kept for conflicts too, not only for a fence
    bool unsure{false};    // the home was not confirmed: `asked` is kept
    bool moved{false};     // this try found that the tool has left
    int tries{0};          // after the first
    retry_rule rule;
    time_point began{};
    milliseconds pause{0};
    std::string request;         // as it went to the link
    std::string asked;           // as the client said it; only where not confirmed
    std::vector<owed> messages;  // what each of them is owed
    std::string replies;         // kept back
    std::string error;           // of the last try
};

}  // namespace hotlane::session
