// The reader's values that are more than one plain scalar: lists of words, labels, forms, overlays.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/overlay.hpp"
#include "config/reader.hpp"

namespace hotlane::config {

namespace {

constexpr std::size_t texts_max = 256;

}  // namespace

void reader::words(std::string_view key,
                   std::vector<std::size_t>& indexes,
                   const std::vector<std::string>& known) {
    const auto* n = find(key);
    if (n == nullptr || !expect(*n, node::kind::sequence, path_of(key))) return;
    std::vector<std::size_t> got;
    for (const auto& item : n->items) {
        if (!expect(item, node::kind::scalar, path_of(key))) return;
        const auto it = std::find(known.begin(), known.end(), item.text);
        const auto index = static_cast<std::size_t>(it - known.begin());
        if (it == known.end()) {
            wrong(item,
                  key,
                  quoted(item.text) + " is not known here",
                  fmt::format("one of: {}", fmt::join(known, ", ")));
            return;
        }
        if (std::find(got.begin(), got.end(), index) != got.end()) {
            wrong(item, key, quoted(item.text) + " stands there twice");
            return;
        }
        got.push_back(index);
    }
    indexes = std::move(got);
}

void reader::form(std::string_view key, const std::string&, const take_text& take) {
    const auto* n = find(key);
    if (n == nullptr || !expect(*n, node::kind::scalar, path_of(key))) return;
    if (const auto trouble = take(n->text)) wrong(*n, key, trouble->message, trouble->mend);
}

void reader::texts(std::string_view key, std::vector<std::string>& values, text_rule rule) {
    const auto* n = find(key);
    if (n == nullptr || !expect(*n, node::kind::sequence, path_of(key))) return;
    if (n->items.size() > texts_max) {
        wrong(*n, key, fmt::format("has more than {} items", texts_max));
        return;
    }
    std::vector<std::string> got;
    for (const auto& item : n->items) {
        if (!expect(item, node::kind::scalar, path_of(key)) || !text_ok(item, key, rule)) return;
        got.push_back(item.text);
    }
    values = std::move(got);
}

void reader::pairs(std::string_view key, std::map<std::string, std::string>& values) {
    const auto* n = find(key);
    if (n == nullptr || !expect(*n, node::kind::map, path_of(key))) return;
    if (n->entries.size() > texts_max) {
        wrong(*n, key, fmt::format("has more than {} items", texts_max));
        return;
    }
    std::map<std::string, std::string> got;
    for (const auto& [name, value] : n->entries) {
        if (!expect(value, node::kind::scalar, path_of(key))) return;
        if (!text_ok(name, name.text, text_rule::name)) return;
        if (!text_ok(value, name.text, text_rule::any)) return;
        got[name.text] = value.text;
    }
    values = std::move(got);
}

// Kept as it is written, since what it sets is put on top of policies that are not known yet.
void reader::overlaid(std::string_view key, overlay_ptr& value) {
    const auto* n = find(key);
    if (n == nullptr || !expect(*n, node::kind::map, path_of(key))) return;
    value = std::make_shared<const overlay>(overlay{*n, path_of(key), nullptr});
}

}  // namespace hotlane::config
