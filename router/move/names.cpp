#include "router/move/names.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace hotlane::move {
namespace {

constexpr std::string_view alphabet = "234567abcdefghijklmnopqrstuvwxyz";  // ascending: ids sort
constexpr std::size_t time_digits = 9, random_digits = 4, id_digits = time_digits + random_digits;
constexpr std::string_view prefix = "hotlane_";

void put_base32(std::string& out, std::uint64_t value, std::size_t digits) {
    for (std::size_t i = digits; i-- > 0;)
        out += alphabet[static_cast<std::size_t>((value >> (5 * i)) & 31U)];
}

bool is_number(std::string_view text) noexcept {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string make_move_id(policy::time_point now, std::uint64_t random) {
    std::string out;
    put_base32(out, static_cast<std::uint64_t>(now.time_since_epoch().count()), time_digits);
    put_base32(out, random, random_digits);
    return out;
}

bool is_move_id(std::string_view text) noexcept {
    return text.size() == id_digits && std::all_of(text.begin(), text.end(), [](char c) {
               return alphabet.find(c) != std::string_view::npos;
           });
}

std::string engine_name(std::string_view move, part what, std::size_t index) {
    return fmt::format("{}{}_{}{}", prefix, move, static_cast<char>(what), index);
}

std::string stray_name(std::string_view move, std::size_t index, std::size_t number) {
    return fmt::format("{}_{}", engine_name(move, part::stray, index), number);
}

std::string staging_schema(std::string_view move) {
    return fmt::format("{}{}", prefix, move);
}

std::string fenced_schema(std::string_view move) {
    return fmt::format("{}{}_fenced", prefix, move);
}

std::string decoding_name(std::string_view move) {
    return fmt::format("{}{}", prefix, move);
}

bool is_own_name(std::string_view name) noexcept {
    if (name == hint_table) return true;
    if (name.substr(0, prefix.size()) != prefix) return false;
    name.remove_prefix(prefix.size());
    if (!is_move_id(name.substr(0, id_digits))) return false;
    name.remove_prefix(id_digits);
    if (name.size() < 3 || name[0] != '_' ||
        std::string_view("fxstdp").find(name[1]) == std::string_view::npos)
        return false;
    name.remove_prefix(2);
    const auto cut = name.find('_');
    if (cut == std::string_view::npos) return is_number(name);
    return is_number(name.substr(0, cut)) && is_number(name.substr(cut + 1));
}

std::string move_of_name(std::string_view name, part what) {
    if (!is_own_name(name) || name == hint_table) return {};
    const auto id = name.substr(prefix.size(), id_digits);
    return name[prefix.size() + id_digits + 1] == static_cast<char>(what) ? std::string(id)
                                                                          : std::string();
}

}  // namespace hotlane::move
