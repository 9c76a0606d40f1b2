// A blocking socket that frames what it reads and batches what it writes.
#pragma once

#include <optional>
#include <string>

#include "router/wire/frame.hpp"

namespace hotlane::devengine {

struct incoming {
    char tag{};
    std::string body;
};

class client_socket {
  public:
    explicit client_socket(int fd) : fd_(fd) {}
    client_socket(const client_socket&) = delete;
    client_socket& operator=(const client_socket&) = delete;

    // The next message; nothing when the client is gone or speaks no protocol of ours.
    std::optional<incoming> read_message();
    std::optional<std::string> read_startup();

    std::string& out() noexcept { return out_; }
    bool flush();
    bool flush_if_large() { return out_.size() < flush_size || flush(); }

  private:
    static constexpr std::size_t flush_size = 64 * 1024;

    std::optional<wire::scanned> scan(bool startup);
    bool fill();

    int fd_;
    std::string in_;
    std::size_t used_{0};
    std::string out_;
};

}  // namespace hotlane::devengine
