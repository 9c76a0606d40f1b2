// Light clients of the fleet's store, as sidecars use it: joining, renewing leases, following news.
//   bench-fleet-store DSN CLIENTS TOOLS SECONDS LEASE_MS
// One client leads and moves a random tool five times a second. Prints one line of JSON: how long
// the roll-out took, the statements, and how long a change took to reach every client.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "router/placement/fleet_store.hpp"

using namespace hotlane;
using std::chrono::milliseconds;
using steady = std::chrono::steady_clock;

namespace {

// When each change was made, and how long it took to be known, by everyone.
class changes {
  public:
    void made(const std::string& tool, std::uint64_t epoch) {
        const std::lock_guard lock(mutex_);
        at_[tool + "/" + std::to_string(epoch)] = steady::now();
    }
    void seen(const std::string& tool, std::uint64_t epoch) {
        const auto now = steady::now();
        const std::lock_guard lock(mutex_);
        const auto found = at_.find(tool + "/" + std::to_string(epoch));
        if (found != at_.end())
            took_ms_.push_back(
                std::chrono::duration<double, std::milli>(now - found->second).count());
    }
    std::vector<double> sorted() {
        const std::lock_guard lock(mutex_);
        std::sort(took_ms_.begin(), took_ms_.end());
        return took_ms_;
    }

  private:
    std::mutex mutex_;
    std::map<std::string, steady::time_point> at_;
    std::vector<double> took_ms_;
};

struct shared {
    std::string dsn;
    milliseconds lease{};
    std::atomic<std::size_t> failures{0};
    std::atomic<std::uint64_t> statements{0};
    changes all;

    [[nodiscard]] bool stopped() {
        const std::lock_guard lock(mutex_);
        return stop_;
    }
    // Until the end, or for so long.
    void wait_for_end(milliseconds longest) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, longest, [this] { return stop_; });
    }
    // Until so many have joined, or for so long. How many have.
    std::size_t wait_for_joined(std::size_t wanted, milliseconds longest) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, longest, [&] { return joined_ >= wanted; });
        return joined_;
    }
    void one_joined() {
        const std::lock_guard lock(mutex_);
        ++joined_;
        changed_.notify_all();
    }
    void end() {
        const std::lock_guard lock(mutex_);
        stop_ = true;
        changed_.notify_all();
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool stop_{false};
    std::size_t joined_{0};
};

placement::postgres_target target(const shared& with, const std::string& name) {
    placement::postgres_target at;
    at.dsn = with.dsn;
    at.idle_timeout = with.lease;
    at.connect_timeout = milliseconds(30'000);
    at.statement_timeout = milliseconds(30'000);
    at.name = name;
    return at;
}

// What a coordinator asks of the store, without homes and clients of its own.
void follow(shared& with, int number) {
    auto opened = placement::open_postgres_store(target(with, "light"));
    if (!opened) return;
    auto& store = **opened;
    placement::sidecar_record who;
    who.id = "light-" + std::to_string(number);
    who.name = who.id;
    who.lease = with.lease;
    std::mt19937 dice(static_cast<unsigned>(number));
    with.wait_for_end(milliseconds(dice() % 2'000));  // as a roll-out's pods come
    while (!with.stopped() && !store.reach())
        with.wait_for_end(milliseconds(250 + dice() % 250));
    with.statements += 2;
    if (!store.join(who)) ++with.failures;
    std::uint64_t version = 0;
    bool due = true;
    auto beat_at = steady::now();
    bool counted = false;
    while (!with.stopped()) {
        if (steady::now() >= beat_at) {
            ++with.statements;
            const auto got = store.beat(who, nlohmann::json(), false);
            if (!got) ++with.failures;
            if (got && got->version != version) due = true;
            const auto third = with.lease.count() / 3;
            beat_at =
                steady::now() + milliseconds(third - static_cast<long long>(dice()) % (third / 10));
        }
        if (due) {
            ++with.statements;
            if (const auto got = store.changes(version)) {
                version = got->version;
                due = false;
                for (const auto& p : got->placements)
                    with.all.seen(p.tool, p.epoch);
            } else {
                ++with.failures;
            }
        }
        if (!std::exchange(counted, true)) with.one_joined();
        const auto left = std::chrono::ceil<milliseconds>(beat_at - steady::now());
        due = store.wait(std::clamp(left, milliseconds(1), milliseconds(1'000))) || due;
    }
    static_cast<void>(store.leave(who.id));
}

double at(const std::vector<double>& sorted, double part) {
    if (sorted.empty()) return -1;
    return sorted[std::min(sorted.size() - 1,
                           static_cast<std::size_t>(part * static_cast<double>(sorted.size())))];
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) {
        std::fputs("bench-fleet-store DSN CLIENTS TOOLS SECONDS LEASE_MS\n", stderr);
        return 2;
    }
    shared with;
    with.dsn = argv[1];
    const int clients = std::atoi(argv[2]);
    const int tools = std::atoi(argv[3]);
    const std::chrono::seconds length{std::atoi(argv[4])};
    with.lease = milliseconds(std::atoi(argv[5]));

    auto leads = placement::open_postgres_store(target(with, "leads"));
    if (!leads || !(*leads)->reach()) return 1;
    placement::sidecar_record who;
    who.id = who.name = "leads";
    who.lease = with.lease;
    if (!(*leads)->join(who)) return 1;
    if (const auto got = (*leads)->beat(who, nlohmann::json(), true); !got || !got->may_lead)
        return 1;
    if (!(*leads)->take_lead(who.id)) return 1;
    const auto name = [](int i) { return "tool" + std::to_string(i); };
    std::vector<std::uint64_t> epochs(static_cast<std::size_t>(tools), 1);
    for (int i = 0; i < tools; ++i)
        if (!(*leads)->put_placement({name(i), policy::home_kind::engine, 1, {}, {}})) return 1;

    const auto began = steady::now();
    std::vector<std::jthread> threads;
    for (int i = 0; i < clients; ++i)
        threads.emplace_back([&with, i] { follow(with, i); });
    std::size_t joined = 0;
    while (joined < static_cast<std::size_t>(clients) &&
           steady::now() - began < std::chrono::minutes(2)) {
        // A leader that is silent loses its session.
        static_cast<void>((*leads)->beat(who, nlohmann::json(), false));
        joined = with.wait_for_joined(static_cast<std::size_t>(clients), with.lease / 3);
    }
    const std::chrono::duration<double> rollout = steady::now() - began;
    const auto before = with.statements.load();
    std::printf("{\"event\": \"joined\", \"clients\": %zu, \"rollout_s\": %.2f}\n",
                joined,
                rollout.count());
    std::fflush(stdout);

    std::mt19937 dice(1);
    const auto measured = steady::now();
    auto beat_at = measured;
    int moves = 0;
    while (steady::now() - measured < length) {
        const auto i = dice() % static_cast<unsigned>(tools);
        with.all.made(name(static_cast<int>(i)), ++epochs[i]);
        static_cast<void>((*leads)->put_placement(
            {name(static_cast<int>(i)), policy::home_kind::postgres, epochs[i], {}, {}}));
        ++moves;
        if (steady::now() >= beat_at) {
            static_cast<void>((*leads)->beat(who, nlohmann::json(), false));
            beat_at = steady::now() + with.lease / 3;
        }
        with.wait_for_end(milliseconds(200));
    }
    const std::chrono::duration<double> ran = steady::now() - measured;
    const auto statements = with.statements.load() - before;
    with.end();
    threads.clear();
    const auto took = with.all.sorted();
    std::puts(fmt::format("{{\"event\": \"done\", \"changes\": {}, \"seen\": {}, \"p50_ms\": "
                          "{:.1f}, \"p99_ms\": {:.1f}, "
                          "\"max_ms\": {:.1f}, \"statements_per_s\": {:.1f}, \"failures\": {}}}",
                          moves,
                          took.size(),
                          at(took, 0.5),
                          at(took, 0.99),
                          took.empty() ? -1.0 : took.back(),
                          static_cast<double>(statements) / ran.count(),
                          with.failures.load())
                  .c_str());
    return 0;
}
