// An environment without shared links and retries: what tests that need neither inherit.
#pragma once

#include "router/session/environment.hpp"

namespace hotlane::session::testing {

class unpooled_environment : public environment {
  public:
    void pinned(pin) override {}
    bool gate_is_open() override { return true; }
    link_memory* borrow(const link_identity&) override { return nullptr; }
    void give_back(link_fate) override {}
    void stop_waiting() override {}
    pairs_ptr greeting(const link_identity&) override { return nullptr; }
    std::uint32_t process_number() override { return 1; }
    retry_rule retry() override { return {}; }
    std::uint64_t dice() override { return 0; }
    void retried(retry_outcome, int) override {}
};

}  // namespace hotlane::session::testing
