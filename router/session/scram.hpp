// The client's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), without channel binding.
//
// Towards a home that may be hostile: every size and the iteration count are bounded before any
// work is done for them, and the server must prove that it knows the password too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace hotlane::session {

class scram_client {
  public:
    static constexpr int iterations_max = 100'000;
    static constexpr std::size_t nonce_bytes_max = 1'024;
    static constexpr std::size_t salt_bytes_max = 1'024;
    static constexpr std::size_t message_bytes_max = 4'096;

    explicit scram_client(std::string password);
    scram_client(std::string password, std::string nonce);  // for tests: RFC's own examples
    ~scram_client();
    scram_client(const scram_client&) = delete;
    scram_client& operator=(const scram_client&) = delete;

    [[nodiscard]] std::string first_message() const;
    // Answers the server's first message; the error says what is wrong with it.
    tl::expected<std::string, std::string> final_message(std::string_view server_first);
    // True: the server knows the password.
    [[nodiscard]] bool verify(std::string_view server_final) const;

  private:
    std::string password_;
    std::string nonce_;
    std::string server_signature_;
};

// A SASL list of the home (AuthenticationSASL) offers SCRAM-SHA-256.
bool offers_scram(std::string_view mechanisms) noexcept;

}  // namespace hotlane::session
