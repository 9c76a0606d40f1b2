// Clients that share links are each answered as by a home of their own: byte for byte, whatever
// they send, in whatever pieces, in whatever order the links go round, and when some of them vanish
// in the middle of a transaction.
#include <catch2/catch.hpp>

#include <deque>
#include <functional>

#include "tests/property/session/dice.hpp"
#include "tests/unit/session/model_home.hpp"

using namespace hotlane;
using namespace hotlane::session;
using namespace hotlane::session::testing;
using policy::home_kind;

namespace {

std::string some_sql(dice& random, int number) {
    const auto n = std::to_string(number);
    static const std::vector<std::function<std::string(const std::string&, dice&)>> all{
        [](auto&, auto&) { return std::string("BEGIN"); },
        [](auto&, auto&) { return std::string("COMMIT"); },
        [](auto&, auto&) { return std::string("ROLLBACK"); },
        [](auto& one, auto&) { return "INSERT INTO t VALUES (" + one + ")"; },
        [](auto& one, auto&) { return "bad " + one; },
        [](auto& one, auto& r) { return "SET a.x" + std::to_string(roll(r, 2)) + " = " + one; },
        [](auto&, auto& r) { return "SHOW a.x" + std::to_string(roll(r, 2)); },
        [](auto&, auto& r) { return "RESET a.x" + std::to_string(roll(r, 2)); },
        [](auto& one, auto&) { return "SELECT 'k" + one + "'"; },
        [](auto&, auto& r) { return "SELECT 'same" + std::to_string(roll(r, 3)) + "'"; },
        [](auto&, auto&) { return std::string(); },
    };
    return all[roll(random, all.size())](n, random);
}

std::string some_query(dice& random, int number) {
    if (roll(random, 12) == 0) return "DEALLOCATE s" + std::to_string(roll(random, 3));
    if (roll(random, 30) == 0) return roll(random, 2) == 0 ? "DEALLOCATE ALL" : "DISCARD ALL";
    if (roll(random, 8) == 0) return some_sql(random, number) + "; " + some_sql(random, number + 1);
    return some_sql(random, number);
}

std::string some_messages(dice& random, int number) {
    const std::string name = "s" + std::to_string(roll(random, 3));
    const std::string portal = roll(random, 4) == 0 ? "p" : "";
    switch (roll(random, 18)) {
        case 0:
        case 1:
        case 2:
            return f::query(some_query(random, number));
        case 3:
        case 4:
            if (roll(random, 9) == 0)
                return f::parse(roll(random, 2) == 0 ? name : "",
                                "DEALLOCATE s" + std::to_string(roll(random, 3)));
            return f::parse(name, some_sql(random, number));
        case 5:
            return f::parse("", some_sql(random, number)) + f::bind(portal, "");
        case 6:
        case 7:
            return f::bind(portal, roll(random, 3) == 0 ? "" : name);
        case 8:
            return f::describe(name);
        case 9:
            return f::describe_portal(portal);
        case 10:
        case 11:
            return f::execute(portal, roll(random, 4) == 0 ? 1 : 0);
        case 12:
            return f::close(roll(random, 5) == 0 ? "" : name);
        case 13:
            return f::flush();
        case 14:
            return f::query("COPY t FROM STDIN") + f::bytes('d', "7") + f::bytes('c');
        default:
            return f::sync();
    }
}

struct shared_link {
    explicit shared_link(model_store& store) : home(store) {
        home.feed(f::startup());
        home.out.clear();
        memory.kind = home_kind::postgres;
        memory.generation = 1;
        memory.status = std::make_shared<const pairs>(pairs{{"server_version", "15.0"}});
    }
    model_home home;
    link_memory memory;
    std::size_t user{none};
    static constexpr std::size_t none = static_cast<std::size_t>(-1);
};

struct client {
    script s{home_kind::postgres, {}, true, pooling::transaction};
    model_store direct_store;
    model_home direct{direct_store};
    std::string sent;
    shared_link* link{nullptr};
    bool waits{false};
};

class bench {
  public:
    bench(std::uint64_t seed, std::size_t clients, std::size_t links) : random_(seed) {
        for (std::size_t i = 0; i < links; ++i)
            links_.push_back(std::make_unique<shared_link>(store_));
        for (std::size_t i = 0; i < clients; ++i) {
            clients_.push_back(nullptr);
            arrive(i);
        }
    }

    void run(int steps, bool some_vanish) {
        for (int i = 0; i < steps; ++i) {
            const auto which = roll(random_, clients_.size());
            auto& one = *clients_[which];
            const auto bytes = some_messages(random_, i * 2);
            one.sent += bytes;
            one.direct.feed(bytes);
            one.s.piece = roll(random_, 3) == 0 ? 1 + roll(random_, 9) : 0;
            one.s.client(bytes);
            for (auto n = roll(random_, 6); n > 0; --n)
                exchange();
            if (some_vanish && roll(random_, 15) == 0) vanish(which);
        }
        // Whoever is in a transaction would keep the others waiting for ever.
        for (std::size_t i = 0; i < clients_.size(); ++i)
            say(i, f::bytes('c') + f::sync() + f::query("ROLLBACK"));
        for (int i = 0; i < 200'000 && !is_settled(); ++i)
            exchange();
        for (const auto& one : clients_)
            check(*one);
        for (const auto& link : links_)
            REQUIRE(link->user == shared_link::none);
    }

  private:
    void say(std::size_t which, const std::string& bytes) {
        auto& one = *clients_[which];
        one.sent += bytes;
        one.direct.feed(bytes);
        one.s.piece = 0;
        one.s.client(bytes);
    }

    void arrive(std::size_t which) {
        clients_[which] = std::make_unique<client>();
        auto& one = *clients_[which];
        one.direct.feed(f::startup());
        one.direct.out.clear();
        auto& env = one.s.env();
        env.facts.statements_per_link = 3;  // so that statements come and go
        env.known_greeting = links_[0]->memory.status;
        env.on_borrow = [this, which]() -> link_memory* {
            auto& mine = *clients_[which];
            for (const auto& link : links_) {
                if (link->user != shared_link::none) continue;
                link->user = which;
                mine.link = link.get();
                return &link->memory;
            }
            mine.waits = true;
            return nullptr;
        };
        env.on_give_back = [this, which](link_fate fate) {
            auto& link = *clients_[which]->link;
            link.user = shared_link::none;
            clients_[which]->link = nullptr;
            if (fate == link_fate::keep) {
                REQUIRE(link.home.out.empty());
                return;
            }
            for (auto& each : links_)
                if (each.get() == &link) {
                    gone_.push_back(std::move(each));  // still in use by our caller
                    each = std::make_unique<shared_link>(store_);
                }
        };
        one.s.link_sink = [this, which](std::string_view bytes) {
            if (auto* const link = clients_[which]->link) link->home.feed(bytes);
        };
        one.s.client(f::startup());
        one.s.to_client();
    }

    void vanish(std::size_t which) {
        auto& one = *clients_[which];
        one.waits = false;
        one.s.client_eof();
        one.s.client_eof();  // a second one is a reset
        REQUIRE(one.s.client_closed);
        REQUIRE(one.link == nullptr);
        arrive(which);
    }

    // One random thing that can happen on the side of the homes.
    void exchange() {
        gone_.clear();
        const auto which = roll(random_, clients_.size());
        auto& one = *clients_[which];
        if (one.link && !one.link->home.out.empty()) {
            auto& out = one.link->home.out;
            const auto size = std::min<std::size_t>(out.size(), 1 + roll(random_, 60));
            const auto part = out.substr(0, size);
            out.erase(0, size);
            one.s.home(part);
        } else if (one.waits) {
            for (const auto& link : links_) {
                if (link->user != shared_link::none) continue;
                one.waits = false;
                link->user = which;
                one.link = link.get();
                one.s.lend(link->memory);
                return;
            }
        }
    }

    bool is_settled() {
        for (const auto& one : clients_)
            if (one->waits || (one->link && !one->link->home.out.empty())) return false;
        return true;
    }

    static void check(client& one) {
        const auto seen = one.s.to_client();
        const auto last = seen.rfind("Mthe home");
        const std::string why = last == std::string::npos ? "" : seen.substr(last, 60);
        CAPTURE(sent_tags(one.sent), tags(seen), tags(one.direct.out), why);
        REQUIRE_FALSE(one.s.client_closed);
        REQUIRE(seen == one.direct.out);
        REQUIRE(one.s.env().inside == 0);
        REQUIRE(one.s.env().entered == one.s.env().left);
    }

    dice random_;
    model_store store_;
    std::vector<std::unique_ptr<shared_link>> links_;
    std::vector<std::unique_ptr<shared_link>> gone_;
    std::vector<std::unique_ptr<client>> clients_;
};

}  // namespace

TEST_CASE("clients that share links do not see each other") {
    for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
        INFO("seed " << seed);
        bench all(seed, 1 + seed % 4, 1 + seed % 2);
        all.run(40, false);
    }
}

TEST_CASE("nor when some of them vanish") {
    for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
        INFO("seed " << seed);
        bench all(seed, 3, 2);
        all.run(60, true);
    }
}
