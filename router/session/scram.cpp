#include "router/session/scram.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stringprep.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <deque>
#include <optional>

namespace hotlane::session {
namespace {

constexpr std::size_t hash_size = 32;
using hash = std::array<unsigned char, hash_size>;

const unsigned char* raw(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

hash hmac(std::string_view key, std::string_view text) {
    hash out{};
    unsigned int size = hash_size;
    HMAC(EVP_sha256(),
         key.data(),
         static_cast<int>(key.size()),
         raw(text),
         text.size(),
         out.data(),
         &size);
    return out;
}

std::string_view view(const hash& value) {
    return {reinterpret_cast<const char*>(value.data()), value.size()};
}

hash sha256(std::string_view text) {
    hash out{};
    unsigned int size = hash_size;
    EVP_Digest(text.data(), text.size(), out.data(), &size, EVP_sha256(), nullptr);
    return out;
}

std::string base64(std::string_view bytes) {
    std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
    const int size = EVP_EncodeBlock(
        reinterpret_cast<unsigned char*>(out.data()), raw(bytes), static_cast<int>(bytes.size()));
    out.resize(static_cast<std::size_t>(size));
    return out;
}

std::optional<std::string> unbase64(std::string_view text) {
    if (text.empty() || text.size() % 4 != 0) return std::nullopt;
    std::string out(text.size() / 4 * 3, '\0');
    const int size = EVP_DecodeBlock(
        reinterpret_cast<unsigned char*>(out.data()), raw(text), static_cast<int>(text.size()));
    if (size < 0) return std::nullopt;
    // OpenSSL counts the padding as bytes.
    std::size_t padding = 0;
    while (padding < 2 && text[text.size() - 1 - padding] == '=')
        ++padding;
    out.resize(static_cast<std::size_t>(size) - padding);
    return out;
}

// Takes `x=value` off a comma-separated list; nothing if another attribute stands there.
std::optional<std::string_view> attribute(std::string_view& rest, char name) {
    if (rest.size() < 2 || rest[0] != name || rest[1] != '=') return std::nullopt;
    const auto end = rest.find(',');
    const auto value = rest.substr(2, end == std::string_view::npos ? end : end - 2);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    return value;
}

struct derived_keys {
    hash client{}, server{};
};

derived_keys derive(std::string_view password, std::string_view salt, int iterations) {
    hash salted{};
    PKCS5_PBKDF2_HMAC(password.data(),
                      static_cast<int>(password.size()),
                      raw(salt),
                      static_cast<int>(salt.size()),
                      iterations,
                      EVP_sha256(),
                      hash_size,
                      salted.data());
    const derived_keys made{hmac(view(salted), "Client Key"), hmac(view(salted), "Server Key")};
    OPENSSL_cleanse(salted.data(), salted.size());
    return made;
}

// Stretching a password takes milliseconds of the thread that serves everybody, and a role's salt
// is the same at each login: the keys of the last few are kept.
derived_keys keys_of(std::string_view password, std::string_view salt, int iterations) {
    constexpr std::size_t kept_max = 64;
    struct kept {
        hash password;  // of it, not itself
        std::string salt;
        int iterations;
        derived_keys keys;
    };
    thread_local std::deque<kept> all;
    const auto digest = sha256(password);
    for (const auto& one : all)
        if (one.iterations == iterations && one.salt == salt && one.password == digest)
            return one.keys;
    all.push_back({digest, std::string(salt), iterations, derive(password, salt, iterations)});
    if (all.size() > kept_max) {
        OPENSSL_cleanse(&all.front().keys, sizeof(derived_keys));
        all.pop_front();
    }
    return all.back().keys;
}

std::string random_nonce() {
    std::array<unsigned char, 18> bytes{};
    RAND_bytes(bytes.data(), static_cast<int>(bytes.size()));
    return base64({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// SASLprep (RFC 4013): one password, however it was typed. Where it is not for this one (no UTF-8,
// a character that is prohibited or not assigned), PostgreSQL takes the bytes as they are.
std::string prepared(std::string password) {
    char* made = nullptr;
    const int result =
        stringprep_profile(password.c_str(), &made, "SASLprep", STRINGPREP_NO_UNASSIGNED);
    if (result != STRINGPREP_OK || made == nullptr) return password;
    std::string out(made);
    OPENSSL_cleanse(made, out.size());
    std::free(made);
    OPENSSL_cleanse(password.data(), password.size());
    return out;
}

}  // namespace

scram_client::scram_client(std::string password)
    : scram_client(std::move(password), random_nonce()) {}

scram_client::scram_client(std::string password, std::string nonce)
    : password_(prepared(std::move(password))), nonce_(std::move(nonce)) {}

scram_client::~scram_client() {
    OPENSSL_cleanse(password_.data(), password_.size());
}

std::string scram_client::first_message() const {
    return "n,,n=,r=" + nonce_;  // PostgreSQL takes the user of the startup packet
}

tl::expected<std::string, std::string> scram_client::final_message(std::string_view server_first) {
    if (server_first.size() > message_bytes_max)
        return tl::unexpected<std::string>("its SCRAM challenge is too long");
    auto rest = server_first;
    const auto nonce = attribute(rest, 'r');
    const auto salt_text = attribute(rest, 's');
    const auto count_text = attribute(rest, 'i');
    if (!nonce || !salt_text || !count_text)
        return tl::unexpected<std::string>("its SCRAM challenge is malformed");
    if (nonce->size() > nonce_bytes_max || nonce->size() <= nonce_.size() ||
        !nonce->starts_with(nonce_))
        return tl::unexpected<std::string>("its SCRAM nonce is not ours continued");
    const auto salt = unbase64(*salt_text);
    if (!salt || salt->empty() || salt->size() > salt_bytes_max)
        return tl::unexpected<std::string>("its SCRAM salt is malformed");
    int iterations = 0;
    const auto* const end = count_text->data() + count_text->size();
    const auto [stop, failure] = std::from_chars(count_text->data(), end, iterations);
    if (failure != std::errc{} || stop != end || iterations < 1 || iterations > iterations_max)
        return tl::unexpected<std::string>("its SCRAM iteration count is out of bounds");

    const auto keys = keys_of(password_, *salt, iterations);
    const auto& client_key = keys.client;
    const auto stored_key = sha256(view(client_key));
    const auto without_proof = "c=biws,r=" + std::string(*nonce);  // biws: base64 of "n,,"
    const auto signed_text =
        "n=,r=" + nonce_ + "," + std::string(server_first) + "," + without_proof;
    const auto signature = hmac(view(stored_key), signed_text);
    hash proof{};
    for (std::size_t i = 0; i < hash_size; ++i)
        proof[i] = static_cast<unsigned char>(client_key[i] ^ signature[i]);
    server_signature_ = std::string(view(hmac(view(keys.server), signed_text)));
    return without_proof + ",p=" + base64(view(proof));
}

bool scram_client::verify(std::string_view server_final) const {
    if (server_final.size() > message_bytes_max || server_signature_.empty()) return false;
    const auto value = attribute(server_final, 'v');
    if (!value) return false;
    const auto signature = unbase64(*value);
    return signature && signature->size() == server_signature_.size() &&
           CRYPTO_memcmp(signature->data(), server_signature_.data(), signature->size()) == 0;
}

bool offers_scram(std::string_view mechanisms) noexcept {
    while (!mechanisms.empty()) {
        const auto end = mechanisms.find('\0');
        if (mechanisms.substr(0, end) == "SCRAM-SHA-256") return true;
        if (end == std::string_view::npos) break;
        mechanisms.remove_prefix(end + 1);
    }
    return false;
}

}  // namespace hotlane::session
