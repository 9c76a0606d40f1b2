#include "router/net/server.hpp"

#include <algorithm>
#include <csignal>
#include <future>
#include <utility>

#include <boost/asio/post.hpp>

#include "router/net/address.hpp"
#include "router/net/listener.hpp"
#include "router/net/shared.hpp"
#include "router/net/socket.hpp"
#include "router/net/worker.hpp"
#include "router/wire/message.hpp"
#include "router/wire/sqlstate.hpp"

namespace hotlane::net {

namespace {

constexpr milliseconds poll_step{5};

session::bounds bounds_of(const config::model& model) {
    session::bounds made;
    made.buffer_bytes = model.limit.buffer_bytes;
    made.parsed_message_bytes = model.limit.parsed_message_bytes;
    made.statements = static_cast<std::size_t>(std::max(0, model.limit.statements_per_client));
    made.parameters = static_cast<std::size_t>(std::max(0, model.limit.parameters_per_client));
    made.login_timeout = model.limit.login_timeout;
    made.connect_timeout = model.limit.connect_timeout;
    // The longest of all tools; each connection shortens it to its own tool's when it arms.
    for (const auto& tool : model.tools)
        made.hold_max = std::max(made.hold_max, tool.hold_max);
    return made;
}

// Too many who have not said who they are: no session is spent on one more.
void turn_away(stream client) {
    std::string last_words;
    wire::append_error(last_words,
                       {.severity = "FATAL",
                        .severity_raw = "FATAL",
                        .sqlstate = std::string(wire::sqlstate::too_many_connections),
                        .message = "too many clients are logging in",
                        .detail = {},
                        .hint = "hotlane's limit clients_before_login is hit.",
                        .others = {}});
    error_code ignored;
    client.write_some(asio::buffer(last_words), ignored);
    client.close(ignored);
}

std::string name_of(const config::listener& what) {
    return what.unix_path.empty() ? describe(what.at) : what.unix_path;
}

}  // namespace

class data_plane::implementation {
  public:
    implementation(const config::model& model, placement::tool_table& tools, clock now)
        : all_{.limit = model.limit,
               .bounds = bounds_of(model),
               .tools = tools,
               .now = std::move(now),
               .counted = {},
               .keys = {}},
          listen_(model.listen),
          threads_(std::max(1, model.threads)) {}

    tl::expected<std::vector<bound_address>, start_error> start();
    void stop(milliseconds grace);

    shared all_;
    std::vector<std::unique_ptr<worker>> workers_;

  private:
    worker& least_loaded();
    void take(worker& on, stream client, const peer& from);
    void stop_listening();

    std::vector<config::listener> listen_;
    int threads_;
    bool stopped_{false};
    std::vector<std::shared_ptr<listener>> listeners_;
};

tl::expected<std::vector<bound_address>, start_error> data_plane::implementation::start() {
    std::signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < threads_; ++i)
        workers_.push_back(std::make_unique<worker>(all_, i, threads_));
    for (const auto& what : listen_) {
        auto opened = listener::open(workers_[0]->io(), what, all_.counted);
        if (!opened) {
            listeners_.clear();
            workers_.clear();
            return tl::unexpected(start_error{name_of(what), opened.error()});
        }
        listeners_.insert(listeners_.end(), opened->begin(), opened->end());
    }
    std::vector<bound_address> bound;
    for (const auto& each : listeners_) {
        bound.push_back(each->where());
        // The socket is made on its future thread's io_context, so placing and taking go together.
        const auto chosen = std::make_shared<worker*>(workers_[0].get());
        each->start(
            [this, chosen]() -> asio::io_context& {
                *chosen = &least_loaded();
                return (*chosen)->io();
            },
            [this, chosen](stream client, const peer& from) {
                take(**chosen, std::move(client), from);
            });
    }
    for (const auto& each : workers_)
        each->start();
    return bound;
}

worker& data_plane::implementation::least_loaded() {
    return **std::min_element(workers_.begin(), workers_.end(), [](const auto& a, const auto& b) {
        return a->load() < b->load();
    });
}

void data_plane::implementation::take(worker& on, stream client, const peer& from) {
    auto& counted = all_.counted;
    counted.accepted.fetch_add(1, std::memory_order_relaxed);
    prepare_socket(client, from);
    if (counted.before_login.load() >= all_.limit.clients_before_login) {
        counted.refused.fetch_add(1, std::memory_order_relaxed);
        counted.hit("clients_before_login");
        turn_away(std::move(client));
        return;
    }
    counted.before_login.fetch_add(1);
    counted.connections.fetch_add(1);
    on.adopt(std::move(client), from);
}

void data_plane::implementation::stop_listening() {
    if (listeners_.empty()) return;
    std::promise<void> stopped;
    asio::post(workers_[0]->io(), [this, &stopped] {
        for (const auto& each : listeners_)
            each->stop();
        stopped.set_value();
    });
    stopped.get_future().wait();
    listeners_.clear();
}

void data_plane::implementation::stop(milliseconds grace) {
    if (workers_.empty() || std::exchange(stopped_, true)) return;
    stop_listening();
    for (const auto& each : workers_)
        each->shut_down();
    const auto deadline = steady::now() + grace;
    while (all_.counted.connections.load() > 0 && steady::now() < deadline) {
        std::this_thread::sleep_for(poll_step);
    }
    for (const auto& each : workers_)
        each->finish();
    for (const auto& each : workers_)
        each->join();
    workers_.clear();
}

data_plane::data_plane(const config::model& model, placement::tool_table& tools, clock now)
    : self_(std::make_unique<implementation>(model, tools, std::move(now))) {}

data_plane::~data_plane() {
    stop(milliseconds{0});
}

tl::expected<std::vector<bound_address>, start_error> data_plane::start() {
    return self_->start();
}

void data_plane::stop(milliseconds grace) {
    self_->stop(grace);
}

void data_plane::poke_all(const std::string& tool) {
    for (const auto& each : self_->workers_)
        each->poke(tool);
}

milliseconds data_plane::stalest_tick() const {
    milliseconds stalest{0};
    for (const auto& each : self_->workers_)
        stalest = std::max(stalest, each->since_tick());
    return stalest;
}

const net_counters& data_plane::counters() const noexcept {
    return self_->all_.counted;
}

}  // namespace hotlane::net
