// What the command line of the development engine says, with the defaults that were measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hotlane::devengine {

using nanoseconds = std::chrono::nanoseconds;

// What statements cost. The engine has no secondary indexes, so nearly all of its time is scanning:
// it looks for its rows at its snapshot, then once more in the lane.
struct costs {
    nanoseconds commit_latency{std::chrono::milliseconds(5)};  // queued until durable
    nanoseconds write_scan{900};                               // per row of the table
    int scan_in_lane_percent{40};                              // of that; the rest comes before
    nanoseconds read_scan{300};                                // per row of the table
    nanoseconds returned_row{2'700};                           // per row of a SELECT's result
    nanoseconds inserted_row{40'000};                          // per row, in the lane
    nanoseconds update_base{200'000};                          // per UPDATE and DELETE, in the lane
    nanoseconds conflict{600'000};                             // per conflict found, in the lane
};

struct database_options {
    std::string name;
    std::uint16_t port{0};
    std::filesystem::path file;
};

struct options {
    std::string host{"127.0.0.1"};
    std::vector<database_options> databases;
    costs cost;
};

}  // namespace hotlane::devengine
