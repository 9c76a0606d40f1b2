#include "router/net/registry.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>

namespace hotlane::net {

namespace {

bool same(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::string cancel_registry::issue(std::uint32_t process_id,
                                   const std::weak_ptr<connection>& owner) {
    unsigned char bytes[secret_bytes];
    if (RAND_bytes(bytes, sizeof bytes) != 1) return {};
    std::string secret(reinterpret_cast<const char*>(bytes), sizeof bytes);
    const std::lock_guard lock(mutex_);
    keys_.emplace(process_id, key{secret, owner});
    return secret;
}

void cancel_registry::forget(std::uint32_t process_id, std::string_view secret) {
    const std::lock_guard lock(mutex_);
    const auto [first, last] = keys_.equal_range(process_id);
    for (auto it = first; it != last; ++it) {
        if (!same(it->second.secret, secret)) continue;
        keys_.erase(it);
        return;
    }
}

std::shared_ptr<connection> cancel_registry::find(std::uint32_t process_id,
                                                  std::string_view secret) const {
    std::shared_ptr<connection> found;
    const std::lock_guard lock(mutex_);
    const auto [first, last] = keys_.equal_range(process_id);
    for (auto it = first; it != last; ++it) {
        if (same(it->second.secret, secret)) found = it->second.owner.lock();
    }
    return found;
}

std::size_t cancel_registry::size() const {
    const std::lock_guard lock(mutex_);
    return keys_.size();
}

}  // namespace hotlane::net
