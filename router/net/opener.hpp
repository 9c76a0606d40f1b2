// Opens a link for a pool: dials, logs in, and tries again while the home is starting, until a
// deadline. Exactly one callback, never inside start(); none after cancel().
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "router/net/dialer.hpp"
#include "router/net/home_link.hpp"
#include "router/net/worker.hpp"
#include "router/placement/route.hpp"
#include "router/session/environment.hpp"
#include "router/session/login.hpp"

namespace hotlane::net {

class link_opener final : public link_user, public std::enable_shared_from_this<link_opener> {
  public:
    struct order {
        std::shared_ptr<placement::tool_entry> tool;
        std::shared_ptr<const placement::route> route;
        session::link_target target;
        session::link_identity who;
        milliseconds first_pause{0};
    };
    using opened = std::function<void(link_ptr link)>;
    using failed = std::function<void(const session::refusal& why, std::string_view words)>;

    link_opener(worker& on, order what, opened on_opened, failed on_failed);
    void start();
    void cancel();
    void link_event(const link_ptr& link) override;

    // Between two tries while the home is starting.
    static constexpr milliseconds retry_gap{100};

  private:
    void dial(milliseconds pause);
    void connected(stream socket, const peer& at);
    void write();
    void take(std::string_view bytes);
    void try_again(std::string why);
    void fail(const session::refusal& why, std::string_view words);
    void finish();

    worker& worker_;
    order order_;
    opened on_opened_;
    failed on_failed_;
    steady::time_point deadline_;
    timer clock_;
    std::shared_ptr<dialer> dialer_;
    link_ptr link_;
    std::unique_ptr<session::link_login> login_;
    std::string out_;
    std::string why_;  // the last try failed
    bool over_{false};
};

}  // namespace hotlane::net
