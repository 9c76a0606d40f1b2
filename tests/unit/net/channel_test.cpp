// The poller and its channels: nothing that a socket has to say is lost, and nobody is told of what
// is no more his.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <catch2/catch.hpp>

#include "router/net/channel.hpp"

using namespace hotlane::net;

namespace {

// One side is a channel, the other a plain socket.
class user final : public channel_user {
  public:
    user(asio::io_context& io, poller& on) {
        std::array<int, 2> ends{};
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
        peer_ = ends[1];
        stream made(io, protocol(AF_UNIX, 0), ends[0]);
        at.emplace(on, std::move(made), *this);
    }
    ~user() { leave(); }

    void on_readable() override {
        ++told;
        if (then) return then();
        error_code error;
        std::array<char, 16> some{};
        const auto count = at->read_some(asio::buffer(some), error);
        got.append(some.data(), count);
        if (error == asio::error::eof) ended = true;
        if (!error || error == asio::error::would_block) at->wait_read();
    }
    void on_writable() override { ++writable; }

    void say(const std::string& what) const {
        REQUIRE(::send(peer_, what.data(), what.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(what.size()));
    }
    std::size_t drain() const {
        std::array<char, 65'536> some{};
        std::size_t all = 0;
        for (;;) {
            const auto count = ::recv(peer_, some.data(), some.size(), MSG_DONTWAIT);
            if (count <= 0) return all;
            all += static_cast<std::size_t>(count);
        }
    }
    void shut() const { ::shutdown(peer_, SHUT_WR); }
    void leave() {
        if (peer_ >= 0) ::close(std::exchange(peer_, -1));
    }

    std::optional<channel> at;
    std::function<void()> then;
    std::string got;
    int told{0}, writable{0};
    bool ended{false};

  private:
    int peer_{-1};
};

struct fixture {
    fixture() { on.start(); }
    ~fixture() {
        on.stop();
        io.restart();
        io.poll();
    }
    // Until nothing more is to be done.
    void run() {
        for (int quiet = 0; quiet < 5;) {
            io.restart();
            quiet = io.poll() == 0 ? quiet + 1 : 0;
        }
    }
    asio::io_context io;
    poller on{io};
};

}  // namespace

TEST_CASE_METHOD(fixture, "bytes that were there before the wait are told of") {
    user one(io, on);
    one.say("early");
    run();
    CHECK(one.told == 0);  // nobody has asked
    one.at->wait_read();
    run();
    CHECK(one.got == "early");
    one.say("late");
    run();
    CHECK(one.got == "earlylate");
}

TEST_CASE_METHOD(fixture, "what does not fit into one read is read to its end") {
    user one(io, on);
    const std::string text(1'000, 'x');  // no multiple of the buffer
    one.at->wait_read();
    one.say(text);
    one.shut();
    run();
    CHECK(one.got == text);
    CHECK(one.ended);
    const int told = one.told;
    run();
    CHECK(one.told == told);  // the end is told of once, and does not spin
}

TEST_CASE_METHOD(fixture, "an end behind bytes that fill the buffer to the last byte is seen") {
    user one(io, on);
    one.say(std::string(16, 'x'));
    one.shut();
    one.at->wait_read();
    run();
    CHECK(one.got.size() == 16);
    CHECK(one.ended);
}

TEST_CASE_METHOD(fixture, "one who is told and does not read is told again when he asks") {
    user one(io, on);
    one.then = [] {};
    one.say("kept");
    one.at->wait_read();
    run();
    CHECK(one.told == 1);
    run();
    CHECK(one.told == 1);
    one.then = nullptr;
    one.at->wait_read();
    run();
    CHECK(one.got == "kept");
}

TEST_CASE_METHOD(fixture, "a full socket says when it takes bytes again, each time") {
    user one(io, on);
    const std::string much(1 << 20U, 'x');
    for (int turn = 1; turn <= 3; ++turn) {
        error_code error;
        while (!error)
            one.at->write_some(asio::buffer(much), error);
        REQUIRE(error == asio::error::would_block);
        one.at->wait_write();
        run();
        CHECK(one.writable == turn - 1);
        CHECK(one.drain() > 0);
        run();
        CHECK(one.writable == turn);
    }
}

TEST_CASE_METHOD(fixture, "of two that are ready at once the first may end the other, or itself") {
    auto first = std::make_unique<user>(io, on);
    auto second = std::make_unique<user>(io, on);
    const auto end_both = [&] {
        first->at.reset();
        second->at.reset();
    };
    first->then = second->then = end_both;
    first->at->wait_read();
    second->at->wait_read();
    first->say("a");
    second->say("b");
    run();
    CHECK(first->told + second->told == 1);
    // Their places are given to others, who hear nothing of it.
    user third(io, on), fourth(io, on);
    third.at->wait_read();
    fourth.at->wait_read();
    run();
    CHECK(third.told + fourth.told == 0);
    third.say("c");
    run();
    CHECK(third.got == "c");
    CHECK(fourth.told == 0);
}

TEST_CASE_METHOD(fixture, "one that never stops sending leaves the loop its turn") {
    user one(io, on);
    int turns = 0;
    one.then = [&] {
        std::array<char, 4> some{};
        error_code error;
        one.at->read_some(asio::buffer(some), error);
        if (turns < 10) one.say("more!");  // faster than it is read
        one.at->wait_read();
    };
    one.say(std::string(100, 'x'));
    one.at->wait_read();
    std::function<void()> count = [&] {
        if (++turns < 10) asio::post(io, count);
    };
    asio::post(io, count);
    run();
    CHECK(turns == 10);
}

TEST_CASE_METHOD(fixture, "what is put off is done once, in order, also from outside of an event") {
    std::string done;
    on.defer([&] {
        done += "a";
        on.defer([&] { done += "c"; });
    });
    on.defer([&] { done += "b"; });
    CHECK(done.empty());
    run();
    CHECK(done == "abc");
}
