// Many clients of one tool while it changes its home, with losses, timeouts and vanishing clients.
// The ledger must be exact: what was acknowledged is found, once; what was refused is not found;
// only what was answered "unknown" may be either.
#include <catch2/catch.hpp>

#include <algorithm>

#include "tests/simulation/cutover/connection.hpp"

using namespace hotlane;
using namespace hotlane::cutover;
using policy::home_kind;

namespace {

// A part of a request that ends in one ReadyForQuery.
struct unit {
    std::vector<int> rows;  // acknowledged when it succeeds
    std::string text;       // the row that a SELECT must bring back
    bool commit{false};
};

class client : public std::enable_shared_from_this<client> {
  public:
    client(world& all, int number) : all_(all), next_row_(number * 100'000) {}

    void connect() {
        prepared_ = greeted_ = failed_ = false;
        rows_seen_ = 0;
        in_.clear();
        units_.clear();
        plan_.clear();
        const auto serial = ++serial_;
        connection_ = std::make_shared<connection>(
            all_,
            [weak = weak_from_this(), serial](std::string_view bytes) {
                if (const auto self = weak.lock(); self && self->serial_ == serial)
                    self->receive(bytes);
            },
            [weak = weak_from_this(), serial] {
                if (const auto self = weak.lock(); self && self->serial_ == serial) self->gone("");
            });
        connection_->start();
        connection_->client(f::startup());
    }
    [[nodiscard]] bool at_rest() const { return units_.empty() && open_rows_.empty(); }
    void poke() {
        if (connection_) connection_->poke();
    }

  private:
    void later() {
        if (all_.closing_time && open_rows_.empty()) return;
        all_.at(all_.some_time(3'000), [self = shared_from_this(), serial = serial_] {
            if (self->serial_ == serial) self->request();
        });
    }

    std::string insert(int row) { return "INSERT INTO t VALUES (" + std::to_string(row) + ")"; }

    void send(const std::string& bytes, std::vector<unit> units) {
        units_ = std::move(units);
        failed_ = false;
        const auto serial = serial_;
        if (!all_.closing_time && all_.happens(all_.sky.vanishing))
            all_.at(all_.some_time(3'000), [self = shared_from_this(), serial] {
                if (self->serial_ == serial) self->vanish();
            });
        connection_->client(bytes);
    }

    void request() {
        if (!plan_.empty()) {
            auto [bytes, one] = plan_.front();
            plan_.erase(plan_.begin());
            send(bytes, {one});
            return;
        }
        const int row = ++next_row_;
        const auto text = "k" + std::to_string(row);
        switch (all_.roll(6)) {
            case 0:
                send(f::query(insert(row)), {{.rows = {row}}});
                break;
            case 1: {
                const int other = ++next_row_;
                open_rows_ = {row, other};
                plan_ = {{f::query(insert(row)), {}},
                         {f::query(insert(other)), {}},
                         {f::query("COMMIT"), {.rows = {row, other}, .commit = true}}};
                send(f::query("BEGIN"), {{}});
                break;
            }
            case 2:
                send(f::parse("", insert(row)) + f::bind("", "") + f::execute() + f::sync(),
                     {{.rows = {row}}});
                break;
            case 3: {
                const int other = ++next_row_;
                send(f::query(insert(row)) + f::query("SELECT '" + text + "'") +
                         f::query(insert(other)),
                     {{.rows = {row}}, {.text = text}, {.rows = {other}}});
                break;
            }
            case 4: {
                std::string bytes;
                if (!prepared_) bytes = f::parse("s", "SELECT 'kept'") + f::describe("s");
                send(bytes + f::bind("", "s") + f::execute() + f::sync(), {{.text = "kept"}});
                prepared_ = true;
                break;
            }
            default:
                send(f::query("SELECT '" + text + "'"), {{.text = text}});
                break;
        }
    }

    void vanish() {
        // A message that is held has not been sent and never will be.
        const bool held = connection_->held();
        auto& to = held ? all_.book.refused : all_.book.unknown;
        for (const auto& one : units_)
            to.insert(one.rows.begin(), one.rows.end());
        close_rows(to);
        const auto old = std::exchange(connection_, nullptr);
        ++serial_;
        old->vanish();
        all_.at(microseconds(100), [self = shared_from_this()] { self->connect(); });
    }

    void close_rows(std::set<int>& to) {
        to.insert(open_rows_.begin(), open_rows_.end());
        open_rows_.clear();
    }

    void receive(std::string_view bytes) {
        in_.append(bytes);
        for (;;) {
            const auto frame = wire::scan_frame(in_);
            if (frame.status != wire::scan_status::complete) return;
            const auto serial = serial_;
            take(frame.header.tag, std::string(frame.body));
            if (serial != serial_) return;
            in_.erase(0, frame.header.total_size());
        }
    }

    void take(char tag, const std::string& body) {
        if (!greeted_) {
            if (tag == 'E') return gone(wire::decode_error(body)->sqlstate);
            if (tag != 'Z') return;
            greeted_ = true;
            return later();
        }
        if (tag == 'E') {
            const auto error = wire::decode_error(body).value();
            if (error.severity == "FATAL") return gone(error.sqlstate);
            failed_ = true;
            code_ = error.sqlstate;
            if (!units_.empty() && !units_.front().text.empty() && code_ == "26000")
                ++all_.wrong_replies;  // a prepared statement was lost on the way
        } else if (tag == 'D') {
            if (units_.empty() || body.substr(6) != units_.front().text) ++all_.wrong_replies;
            ++rows_seen_;
        } else if (tag == 'C') {
            tag_ = wire::decode_command_complete(body).value();
        } else if (tag == 'Z') {
            unit_over(body[0]);
        }
    }

    void unit_over(char status) {
        if (units_.empty()) {
            ++all_.wrong_replies;
            return;
        }
        const auto one = units_.front();
        units_.erase(units_.begin());
        if (!failed_ && !one.text.empty() && rows_seen_ != 1) ++all_.wrong_replies;
        rows_seen_ = 0;
        auto& to = !failed_           ? all_.book.acknowledged
                   : code_ == "08007" ? all_.book.unknown
                                      : all_.book.refused;
        to.insert(one.rows.begin(), one.rows.end());
        if (one.commit && !failed_) open_rows_.clear();
        if (failed_) {
            if (one.text == "kept") prepared_ = false;
            plan_.clear();
            close_rows(code_ == "08007" ? all_.book.unknown : all_.book.refused);
            if (status != 'I') plan_ = {{f::query("ROLLBACK"), {}}};
        }
        failed_ = false;
        if (units_.empty()) later();
    }

    // The connection ended, with an error's code or without a word.
    void gone(const std::string& code) {
        const bool nothing = code == "08006" || code == "08001" || code == "57P03";
        auto& to = nothing ? all_.book.refused : all_.book.unknown;
        for (const auto& one : units_)
            to.insert(one.rows.begin(), one.rows.end());
        close_rows(to);
        units_.clear();
        ++serial_;
        connection_.reset();
        all_.at(all_.some_time(1'000), [self = shared_from_this()] { self->connect(); });
    }

    world& all_;
    int next_row_;
    std::shared_ptr<connection> connection_;
    std::uint64_t serial_{0};
    bool greeted_{false}, prepared_{false}, failed_{false};
    std::string in_, code_, tag_;
    int rows_seen_{0};
    std::vector<unit> units_;
    std::vector<std::pair<std::string, unit>> plan_;
    std::vector<int> open_rows_;
};

// Hold, drain, copy behind the fence, flip, release; or give up where the drain takes too long.
struct mover {
    world& all;
    std::vector<std::shared_ptr<client>>& clients;

    void begin() {
        if (all.closing_time) return;
        all.gate.hold();
        wait(all.now + all.some_time(20'000));
    }
    void wait(microseconds deadline) {
        if (all.gate.inside() == 0) {
            all.fenced = true;
            all.at(all.some_time(30'000), [this] { flip(); });
        } else if (all.now >= deadline) {
            release();
        } else {
            all.at(microseconds(100), [this, deadline] { wait(deadline); });
        }
    }
    void flip() {
        const auto from = all.route.kind;
        const auto to = from == home_kind::engine ? home_kind::postgres : home_kind::engine;
        all.stores[to].rows = std::exchange(all.stores[from].rows, {});
        all.route.kind = to;
        ++all.route.generation;
        all.fenced = false;
        ++all.switched;
        release();
        for (const auto& one : clients)
            one->poke();
    }
    void release() {
        all.gate.release();
        ++all.ended_moves;
        all.at(all.some_time(60'000), [this] { begin(); });
    }
};

struct totals {
    int switched{0}, held{0}, lost{0};
    std::size_t acknowledged{0}, unknown{0}, refused{0};
};

void simulate(std::uint64_t seed, totals& sum) {
    INFO("seed " << seed);
    world all(seed);
    all.route.generation = 1;
    all.sky = {.losses = static_cast<int>(all.roll(3)) * 10,
               .vanishing = static_cast<int>(all.roll(3)) * 20,
               .dial_failures = static_cast<int>(all.roll(2)) * 10,
               .hold_max = microseconds(5'000 + all.roll(60'000))};
    std::vector<std::shared_ptr<client>> clients;
    for (int i = 1; i <= 5; ++i) {
        clients.push_back(std::make_shared<client>(all, i));
        clients.back()->connect();
    }
    mover move{all, clients};
    all.at(all.some_time(20'000), [&] { move.begin(); });
    all.run(microseconds(200'000));
    all.closing_time = true;
    all.run(microseconds(2'000'000));

    CHECK(all.violations == 0);
    CHECK(all.wrong_replies == 0);
    CHECK(all.gate.inside() == 0);
    CHECK(all.gate.waiting() == 0);
    for (const auto& one : clients)
        CHECK(one->at_rest());
    const auto& rows = all.stores[all.route.kind].rows;
    const std::set<int> found(rows.begin(), rows.end());
    CHECK(found.size() == rows.size());  // nothing twice
    for (const int row : all.book.acknowledged)
        if (!found.contains(row)) FAIL("row " << row << " was acknowledged and is lost");
    for (const int row : found)
        if (!all.book.acknowledged.contains(row) && !all.book.unknown.contains(row))
            FAIL("row " << row << " was refused and is found");
    sum.switched += all.switched;
    sum.held += all.held;
    sum.lost += all.lost;
    sum.acknowledged += all.book.acknowledged.size();
    sum.unknown += all.book.unknown.size();
    sum.refused += all.book.refused.size();
}

}  // namespace

TEST_CASE("the ledger is exact across changes of home, losses and vanishing clients") {
    totals sum;
    for (std::uint64_t seed = 1; seed <= 2'000; ++seed)
        simulate(seed, sum);
    // A simulation in which nothing happens proves nothing.
    REQUIRE(sum.switched > 2'000);
    REQUIRE(sum.held > 2'000);
    REQUIRE(sum.lost > 1'000);
    REQUIRE(sum.acknowledged > 50'000);
    REQUIRE(sum.unknown > 100);
    REQUIRE(sum.refused > 100);
    WARN(sum.switched << " switches, " << sum.held << " held, " << sum.lost
                      << " links lost; rows: " << sum.acknowledged << " acknowledged, "
                      << sum.unknown << " unknown, " << sum.refused << " refused");
}
