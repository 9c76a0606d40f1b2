// The admin API's paths: one table of (method, pattern) rows. GET reads, POST acts.
//
//   GET  status, tools, tools/T, tools/T/explain, tools/T/decisions, moves, moves/ID
//   GET  orders/N           with ?phase=SEEN it waits a moment for another phase
//   POST tools/T/route      {to, execute, by}; without execute: a rehearsal
//   POST tools/T/verify     are both homes as the last move left them?
//   GET  tools/T/eject      how to run it without hotlane
//   POST tools/T/shard      {action: done or skip, by}
//   POST tools/T/pin        {home, for_s, reason, by}
//   POST tools/T/unpin      {by}
//   POST moves/ID           {action: abort, reverse or complete, by}
//   POST reload
//
// 404 unknown tool or path, 405 wrong method, 400 bad body, 409 refused by a guard.
#pragma once

#include "router/admin/service.hpp"

namespace hotlane::control {

class controller;

admin::api_answer answer(controller& at, const admin::api_request& request);

}  // namespace hotlane::control
