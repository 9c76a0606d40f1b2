// Big-endian integers and fields of a message body: a reader over borrowed bytes, and a writer that
// appends whole messages to a string. Both know nothing of message types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hotlane::wire {

[[nodiscard]] inline std::uint32_t load_u32(const char* at) noexcept {
    const auto byte = [at](int i) { return std::uint32_t{static_cast<unsigned char>(at[i])}; };
    return byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
}

[[nodiscard]] inline std::uint16_t load_u16(const char* at) noexcept {
    return static_cast<std::uint16_t>(static_cast<unsigned char>(at[0]) << 8 |
                                      static_cast<unsigned char>(at[1]));
}

inline void store_u32(char* at, std::uint32_t value) noexcept {
    at[0] = static_cast<char>(value >> 24);
    at[1] = static_cast<char>(value >> 16);
    at[2] = static_cast<char>(value >> 8);
    at[3] = static_cast<char>(value);
}

// Reads fields in order. A read past the end yields zero or empty and clears ok() for good, so a
// decoder reads all its fields and asks once.
class reader {
  public:
    explicit reader(std::string_view bytes) noexcept : rest_(bytes) {}

    [[nodiscard]] bool ok() const noexcept { return ok_; }
    [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }
    [[nodiscard]] std::string_view rest() const noexcept { return rest_; }

    std::uint8_t u8() noexcept {
        const auto part = bytes(1);
        return part.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(part[0]);
    }
    std::uint16_t u16() noexcept {
        const auto part = bytes(2);
        return part.empty() ? std::uint16_t{0} : load_u16(part.data());
    }
    std::int16_t i16() noexcept { return static_cast<std::int16_t>(u16()); }
    std::uint32_t u32() noexcept {
        const auto part = bytes(4);
        return part.empty() ? 0U : load_u32(part.data());
    }
    std::int32_t i32() noexcept { return static_cast<std::int32_t>(u32()); }

    std::string_view bytes(std::size_t count) noexcept {
        if (count > rest_.size()) {
            ok_ = false;
            rest_ = {};
            return {};
        }
        const auto part = rest_.substr(0, count);
        rest_.remove_prefix(count);
        return part;
    }

    // A zero-terminated string, without the zero.
    std::string_view cstring() noexcept {
        const auto end = rest_.find('\0');
        if (end == std::string_view::npos) {
            ok_ = false;
            rest_ = {};
            return {};
        }
        const auto part = rest_.substr(0, end);
        rest_.remove_prefix(end + 1);
        return part;
    }

  private:
    std::string_view rest_;
    bool ok_{true};
};

// Appends one message to `out`; the length is filled in when the writer is destroyed or finished.
// Tag 0 makes a message without a tag (startup packets).
class message_writer {
  public:
    message_writer(std::string& out, char tag) : out_(out) {
        if (tag != 0) out_.push_back(tag);
        length_at_ = out_.size();
        out_.append(4, '\0');
    }
    message_writer(const message_writer&) = delete;
    message_writer& operator=(const message_writer&) = delete;
    ~message_writer() {
        store_u32(out_.data() + length_at_, static_cast<std::uint32_t>(out_.size() - length_at_));
    }

    message_writer& u8(std::uint8_t value) {
        out_.push_back(static_cast<char>(value));
        return *this;
    }
    message_writer& i16(std::int16_t value) {
        const auto v = static_cast<std::uint16_t>(value);
        out_.push_back(static_cast<char>(v >> 8));
        out_.push_back(static_cast<char>(v));
        return *this;
    }
    message_writer& u32(std::uint32_t value) {
        char four[4];
        store_u32(four, value);
        out_.append(four, 4);
        return *this;
    }
    message_writer& i32(std::int32_t value) { return u32(static_cast<std::uint32_t>(value)); }
    message_writer& bytes(std::string_view value) {
        out_.append(value);
        return *this;
    }
    message_writer& cstring(std::string_view value) {
        out_.append(value);
        out_.push_back('\0');
        return *this;
    }

  private:
    std::string& out_;
    std::size_t length_at_{};
};

}  // namespace hotlane::wire
