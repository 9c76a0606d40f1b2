// Messages of logical decoding, as PostgreSQL writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stream {

inline std::string big_endian(std::uint64_t n, int bytes) {
    std::string out;
    for (int i = bytes; i-- > 0;)
        out += static_cast<char>((n >> (8 * i)) & 0xFFU);
    return out;
}
inline std::string u8(std::uint64_t n) {
    return big_endian(n, 1);
}
inline std::string u16(std::uint64_t n) {
    return big_endian(n, 2);
}
inline std::string u32(std::uint64_t n) {
    return big_endian(n, 4);
}
inline std::string u64(std::uint64_t n) {
    return big_endian(n, 8);
}
inline std::string text(const std::string& s) {
    return s + '\0';
}

// Values of a row that are no text.
inline const std::string null = "\1null", unchanged = "\1unchanged";

inline std::string row_of(const std::vector<std::string>& values) {
    std::string out = u16(values.size());
    for (const auto& v : values)
        out += v == null ? "n" : v == unchanged ? "u" : "t" + u32(v.size()) + v;
    return out;
}

inline std::string begins(std::uint32_t xid) {
    return "B" + u64(5) + u64(0) + u32(xid);
}
inline std::string commits() {
    return "C" + u8(0) + u64(5) + u64(6) + u64(0);
}
// The first column is the identity.
inline std::string describes(std::uint32_t oid,
                             const std::string& name,
                             const std::vector<std::string>& columns) {
    std::string out = "R" + u32(oid) + text("public") + text(name) + "d" + u16(columns.size());
    for (const auto& c : columns)
        out += u8(&c == &columns.front() ? 1 : 0) + text(c) + u32(25) + u32(0xFFFFFFFF);
    return out;
}
inline std::string inserts(std::uint32_t oid, const std::vector<std::string>& row) {
    return "I" + u32(oid) + "N" + row_of(row);
}
inline std::string updates(std::uint32_t oid,
                           const std::optional<std::string>& old_key,
                           const std::vector<std::string>& row) {
    return "U" + u32(oid) + (old_key ? "K" + *old_key : std::string()) + "N" + row_of(row);
}
inline std::string deletes(std::uint32_t oid, const std::vector<std::string>& row) {
    return "D" + u32(oid) + "K" + row_of(row);
}
inline std::string truncates(const std::vector<std::uint32_t>& oids) {
    std::string out = "T" + u32(oids.size()) + u8(0);
    for (const auto oid : oids)
        out += u32(oid);
    return out;
}
inline std::string emits(const std::string& prefix, const std::string& content) {
    return "M" + u8(1) + u64(0) + text(prefix) + u32(content.size()) + content;
}

}  // namespace stream
