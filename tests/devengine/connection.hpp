// One client of the engine: startup, the simple and the extended protocol.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/devengine/session.hpp"
#include "tests/devengine/socket.hpp"

namespace hotlane::devengine {

class connection {
  public:
    connection(int fd, database& home) : socket_(fd), home_(home) {}
    void run();  // until the client leaves

  private:
    struct prepared {
        statement s;
        std::vector<std::uint32_t> parameter_types;
        std::optional<std::vector<column_info>> described;  // what the client was told
    };
    struct portal {
        std::shared_ptr<prepared> from;
        std::vector<value> parameters;
        std::vector<std::int16_t> formats;
        std::optional<cursor> answer;
    };

    bool start();
    void greet(const wire::startup_message& startup);
    bool serve(const incoming& message);
    void query(std::string_view body);
    bool send_answer(cursor& answer,
                     const std::vector<column_info>& columns,
                     const std::vector<std::int16_t>& formats,
                     std::int32_t limit);
    void extended(const incoming& message);
    result<void> parse(std::string_view body);
    result<void> bind_portal(std::string_view body);
    result<void> describe(std::string_view body);
    result<void> execute(std::string_view body);
    result<void> close(std::string_view body);
    result<void> open(portal& p);
    [[nodiscard]] std::vector<column_info> columns_of(const portal& p) const;
    void send_columns(const std::vector<column_info>& columns,
                      const std::vector<std::int16_t>& formats);
    void send_error(const sql_error& error);
    void sync();

    client_socket socket_;
    database& home_;
    std::unique_ptr<session> session_;
    std::map<std::string, std::shared_ptr<prepared>> statements_;
    std::map<std::string, portal> portals_;
    bool skipping_{false};  // after an error of the extended protocol, until Sync
};

}  // namespace hotlane::devengine
