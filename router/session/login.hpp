// Logging in to a home over a fresh link, sans-io: bytes of the home in, bytes for it out, until it
// is ready for a query. The home is not trusted: what it asks for is bounded, a password never
// leaves in clear, and a server that is only starting is to be asked again.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "router/session/environment.hpp"
#include "router/session/link_memory.hpp"
#include "router/session/scram.hpp"
#include "router/wire/message.hpp"

namespace hotlane::session {

class link_login {
  public:
    enum class state : std::uint8_t {
        going,
        ready,
        again,    // the home is starting or stopping: close, and try once more
        refused,  // close; why() says why
    };

    link_login(std::string tool, std::string password, std::size_t notice_bytes_max);

    // The startup packet: the client's own settings, and where the route says otherwise, its.
    static void append_startup(std::string& out,
                               const link_identity& who,
                               const link_target& target);

    // Takes all of `bytes`; what is to be answered is appended to `out`.
    state feed(std::string_view bytes, std::string& out);

    // ---- once ready ----
    [[nodiscard]] pairs_ptr status();
    [[nodiscard]] const link_key& key() const noexcept { return key_; }
    [[nodiscard]] const std::string& notices() const noexcept { return notices_; }
    // ---- once refused, or asked to come again ----
    [[nodiscard]] const refusal& why() const noexcept { return why_; }
    // The home's own ErrorResponse, with a SQLSTATE in any case; empty: the reason is ours.
    [[nodiscard]] const std::string& words() const noexcept { return words_; }

  private:
    state message(char tag, std::string_view body, std::string& out);
    state authenticate(std::string_view body, std::string& out);
    state answer_sasl(const wire::authentication& request, std::string& out);
    state failed(std::string_view body);
    state refuse(refusal why);

    std::string tool_;
    std::string password_;
    std::size_t notice_bytes_max_;
    std::string inbox_;
    std::optional<scram_client> scram_;
    int sasl_step_{0};
    bool let_in_{false};  // AuthenticationOk has come
    pairs status_;
    link_key key_;
    std::string notices_;
    refusal why_;
    std::string words_;
};

}  // namespace hotlane::session
