// Cancel keys: which session a (process number, secret) pair belongs to. THREADS: any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace hotlane::net {

class connection;

class cancel_registry {
  public:
    static constexpr std::size_t secret_bytes = 4;  // protocol 3.0

    // A new secret for this session from the CSPRNG. Empty: there was no randomness to be had.
    std::string issue(std::uint32_t process_id, const std::weak_ptr<connection>& owner);
    void forget(std::uint32_t process_id, std::string_view secret);
    // Process numbers of different homes may be equal: all secrets under the number are compared,
    // each in constant time.
    std::shared_ptr<connection> find(std::uint32_t process_id, std::string_view secret) const;
    [[nodiscard]] std::size_t size() const;

  private:
    struct key {
        std::string secret;
        std::weak_ptr<connection> owner;
    };
    mutable std::mutex mutex_;
    std::unordered_multimap<std::uint32_t, key> keys_;
};

}  // namespace hotlane::net
