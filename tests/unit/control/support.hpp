// A control plane without a world: a real store in a folder of its own, fake homes and moves, and a
// clock that the test turns.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "router/control/parts.hpp"
#include "router/placement/fleet_store.hpp"

namespace hotlane::control::test {

using namespace std::chrono_literals;

// Waits for a claim with a deadline. It polls: most claims here become true on another thread.
inline bool eventually(const std::function<bool()>& claim, std::chrono::seconds limit = 20s) {
    std::mutex m;
    std::condition_variable never;
    std::unique_lock lock(m);
    const auto end = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < end) {
        if (claim()) return true;
        never.wait_for(lock, 2ms);
    }
    return claim();
}

class folder {
  public:
    folder() {
        static std::atomic<int> count{0};
        path_ = std::filesystem::temp_directory_path() /
                ("hotlane-control-" + std::to_string(::getpid()) + "-" + std::to_string(++count));
        std::filesystem::create_directories(path_);
    }
    ~folder() { std::filesystem::remove_all(path_); }
    folder(const folder&) = delete;
    folder& operator=(const folder&) = delete;
    [[nodiscard]] std::string file(const std::string& name) const {
        return (path_ / name).string();
    }

  private:
    std::filesystem::path path_;
};

inline config::tool make_tool(const std::string& name) {
    config::tool t;
    t.name = name;
    t.match.database = name;
    t.postgres = config::postgres_home{};
    t.postgres->server = "main";
    return t;
}

inline config::model make_model(const std::vector<std::string>& names,
                                policy::mode mode = policy::mode::act) {
    config::model m;
    m.postgres["main"].name = "main";
    policy::settings p;
    p.act_mode = mode;
    p.window.length = 2s;
    p.rails.min_stay = 0s;
    m.policies["default"] = p;
    for (const auto& name : names)
        m.tools.push_back(make_tool(name));
    return m;
}

inline placement::home home_at(policy::home_kind kind) {
    placement::home at;
    at.kind = kind;
    return at;
}

struct logged {
    std::string event;
    nlohmann::json fields;
};

struct bench {
    explicit bench(config::model m)
        : model(std::move(m)),
          tools(*model.get()),
          store(*placement::open_sqlite_store(where.file("state.db"))),
          in{model,
             tools,
             *store,
             [this] { return now(); },
             [this](severity, std::string_view event, const nlohmann::json& fields) {
                 const std::lock_guard lock(mutex);
                 log.push_back({std::string(event), fields});
             },
             fakes()} {}

    control::world fakes() {
        control::world w;
        w.recover = [this](placement::tool_entry& entry, move::surroundings&) {
            ++recovers[0];
            if (homes_down) {
                entry.close("no home answers");
                return false;
            }
            entry.place(home_at(policy::home_kind::engine), 1);
            return true;
        };
        w.run = [this](const move::request& what, move::surroundings& around) {
            return run(what, around);
        };
        w.clean = [this](const placement::move_record& record, move::surroundings&) {
            const std::lock_guard lock(mutex);
            ++cleanings[record.id];
            return cannot_clean == record.id ? move::cleaned{} : cleaned;
        };
        w.adopt = [this](const move::adoption& what, move::surroundings& around) {
            move::adopted out;
            out.detail = {{"new_epoch", 7}};
            if (!adoption_refused.empty())
                out.refusals.push_back({adoption_refused, "it cannot be", "try the other one"});
            if (!what.execute || !out.refusals.empty()) return out;
            around.tools.find(what.tool)->place(home_at(what.home), 7);
            out.done = true;
            return out;
        };
        return w;
    }

    // A move as the control plane sees one: journalled, and at its end the route names the home.
    move::report run(const move::request& what, move::surroundings& around) {
        {
            const std::lock_guard lock(mutex);
            requests.push_back(what);
        }
        ++running;
        while (block && !*around.stop)
            std::this_thread::yield();
        --running;
        move::report out;
        out.refusals = refusals;
        if (!what.execute) return out;
        out.id = "m" + std::to_string(++moves);
        placement::move_record record;
        record.id = out.id;
        record.tool = what.tool;
        record.to = what.to;
        record.phase = "release";
        record.outcome = refusals.empty() ? "done" : outcome;
        record.started = record.ended = now();
        if (!store->put_move(record)) std::abort();  // Catch2 does not assert across threads
        if (around.progress) around.progress(record);
        out.moved = refusals.empty();
        out.held = 42ms;
        const auto entry = tools.find(what.tool);
        if (out.moved) entry->place(home_at(what.to), entry->current()->epoch + 1);
        return out;
    }

    [[nodiscard]] policy::time_point now() const {
        return policy::time_point(policy::duration(clock_ms.load()));
    }
    void pass(policy::duration length) { clock_ms += length.count(); }

    [[nodiscard]] int logs_of(const std::string& event) {
        const std::lock_guard lock(mutex);
        int n = 0;
        for (const auto& l : log)
            n += l.event == event ? 1 : 0;
        return n;
    }
    [[nodiscard]] std::size_t request_count() {
        const std::lock_guard lock(mutex);
        return requests.size();
    }
    void place_all() {
        for (const auto& entry : tools.all())
            entry->place(home_at(policy::home_kind::engine), 1);
    }

    folder where;
    std::atomic<long long> clock_ms{1'800'000'000'000};
    std::atomic<bool> homes_down{false};
    std::atomic<bool> block{false};  // moves wait
    std::atomic<int> running{0};
    std::atomic<int> moves{0};
    std::array<std::atomic<int>, 1> recovers{};
    std::string outcome{"refused"};
    std::vector<move::refusal> refusals;
    move::cleaned cleaned;
    std::string cannot_clean;              // a move whose home does not answer
    std::map<std::string, int> cleanings;  // how often each move was tidied up; under mutex
    std::string adoption_refused;          // code
    std::mutex mutex;
    std::vector<move::request> requests;
    std::vector<logged> log;
    live_model model;
    placement::tool_table tools;
    std::unique_ptr<placement::store> store;
    context in;
};

}  // namespace hotlane::control::test
