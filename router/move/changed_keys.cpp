#include "router/move/changed_keys.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cstring>

namespace hotlane::move {
namespace {

using failure = tl::unexpected<std::string>;

std::size_t bytes_of(const std::vector<key_set>& sets) {
    std::size_t out = 0;
    for (const auto& s : sets)
        out += s.bytes();
    return out;
}

}  // namespace

void key_set::add(const std::vector<std::string_view>& key) {
    if (whole_) return;
    std::string packed;
    for (const auto value : key) {
        const auto length = static_cast<std::uint32_t>(value.size());
        packed.append(reinterpret_cast<const char*>(&length), sizeof length);
        packed += value;
    }
    const auto size = packed.size();
    if (keys_.insert(std::move(packed)).second) bytes_ += size;
}

void key_set::add_all(const key_set& other) {
    if (other.whole_) count_whole();
    if (whole_) return;
    for (const auto& key : other.keys_)
        if (keys_.insert(key).second) bytes_ += key.size();
}

void key_set::count_whole() {
    whole_ = true;
    keys_ = {};
    bytes_ = 0;
}

std::vector<key_values> key_set::keys() const {
    std::vector<key_values> out;
    out.reserve(keys_.size());
    for (const auto& packed : keys_) {
        key_values one;
        for (std::size_t at = 0; at < packed.size();) {
            std::uint32_t length = 0;
            std::memcpy(&length, packed.data() + at, sizeof length);
            at += sizeof length;
            one.emplace_back(packed, at, length);
            at += length;
        }
        out.push_back(std::move(one));
    }
    return out;
}

tl::expected<snapshot_view, std::string> snapshot_view::read(std::string_view text) {
    snapshot_view out;
    const auto bad = [&] { return failure(fmt::format("\"{}\" is no snapshot", text)); };
    const auto number = [](std::string_view digits, std::uint32_t& into) {
        std::uint64_t wide = 0;
        const auto end = digits.data() + digits.size();
        const auto read = std::from_chars(digits.data(), end, wide);
        into = static_cast<std::uint32_t>(wide);
        return !digits.empty() && read.ec == std::errc{} && read.ptr == end;
    };
    const auto first = text.find(':');
    const auto second = first == text.npos ? text.npos : text.find(':', first + 1);
    if (second == text.npos) return bad();
    std::uint32_t oldest = 0;
    if (!number(text.substr(0, first), oldest) ||
        !number(text.substr(first + 1, second - first - 1), out.next_))
        return bad();
    for (auto rest = text.substr(second + 1); !rest.empty();) {
        const auto cut = std::min(rest.find(','), rest.size());
        if (!number(rest.substr(0, cut), out.running_.emplace_back())) return bad();
        rest.remove_prefix(std::min(cut + 1, rest.size()));
    }
    return out;
}

bool snapshot_view::sees(std::uint32_t xid) const noexcept {
    if (static_cast<std::int32_t>(xid - next_) >= 0) return false;
    return std::find(running_.begin(), running_.end(), xid) == running_.end();
}

change_feed::change_feed(std::vector<watched_table> tables, key_limits limits)
    : tables_(std::move(tables)), limits_(limits), now_(tables_.size()), later_(tables_.size()) {}

struct change_feed::handler {
    change_feed& feed;
    using done = tl::expected<void, std::string>;

    done operator()(const pgoutput::begin& b) const {
        if (feed.in_transaction_) return failure("a transaction begins inside another one");
        feed.in_transaction_ = true;
        feed.touched_ = false;
        feed.xid_ = b.xid;
        feed.later_open_ = feed.has_snapshot_ && !feed.snapshot_.sees(b.xid);
        return {};
    }
    done operator()(const pgoutput::commit&) const {
        if (!feed.in_transaction_) return failure("a transaction ends that did not begin");
        feed.in_transaction_ = false;
        if (!feed.touched_) return {};
        // What a snapshot was shown to see is settled; only the others are remembered.
        if (feed.later_open_)
            feed.later_xids_.insert(feed.xid_);
        else if (!feed.has_snapshot_)
            feed.now_xids_.insert(feed.xid_);
        if (feed.now_xids_.size() + feed.later_xids_.size() > feed.limits_.transactions_max)
            return failure("too many transactions that no snapshot sees yet");
        return {};
    }
    done operator()(const pgoutput::relation& r) const { return feed.describe(r); }
    done operator()(const pgoutput::change& c) const { return feed.change(c); }
    done operator()(const pgoutput::truncate& t) const {
        feed.truncate(t);
        return {};
    }
    done operator()(const pgoutput::message& m) const {
        if (m.prefix == prefix) feed.mark_ = std::string(m.content);
        return {};
    }
    done operator()(const pgoutput::aside&) const { return {}; }
};

tl::expected<void, std::string> change_feed::take(std::string_view bytes) {
    const auto event = pgoutput::decode(bytes);
    if (!event) return failure(event.error());
    return std::visit(handler{*this}, *event);
}

tl::expected<void, std::string> change_feed::describe(const pgoutput::relation& r) {
    if (relations_.size() >= limits_.relations_max && relations_.count(r.oid) == 0)
        return failure("too many tables were described");
    described d;
    const auto at = std::find_if(
        tables_.begin(), tables_.end(), [&](const watched_table& t) { return t.oid == r.oid; });
    d.watched = at != tables_.end();
    if (d.watched) {
        d.table = static_cast<std::size_t>(at - tables_.begin());
        for (const auto& name : at->key) {
            const auto column = std::find_if(
                r.columns.begin(), r.columns.end(), [&](const auto& c) { return c.name == name; });
            if (column == r.columns.end())
                return failure(
                    fmt::format("table \"{}\" is sent without its key \"{}\"", r.name, name));
            d.key.push_back(static_cast<std::size_t>(column - r.columns.begin()));
        }
    }
    relations_[r.oid] = std::move(d);
    return {};
}

tl::expected<void, std::string> change_feed::change(const pgoutput::change& c) {
    if (!in_transaction_) return failure("a change outside of a transaction");
    const auto at = relations_.find(c.relation);
    if (at == relations_.end()) return failure("a change of a table that was not described");
    if (!at->second.watched) return {};
    touched_ = true;
    const auto* before = c.before ? &*c.before : nullptr;
    if (before) add_row(at->second, *before, nullptr);
    if (c.after) add_row(at->second, *c.after, before);
    return {};
}

void change_feed::truncate(const pgoutput::truncate& t) {
    for (const auto oid : t.relations) {
        const auto at = std::find_if(
            tables_.begin(), tables_.end(), [&](const watched_table& w) { return w.oid == oid; });
        if (at == tables_.end()) continue;
        touched_ = true;
        open_sets()[static_cast<std::size_t>(at - tables_.begin())].count_whole();
    }
}

// A key that is not there in full could be any: the table counts whole.
void change_feed::add_row(const described& d,
                          const pgoutput::tuple& row,
                          const pgoutput::tuple* before) {
    auto& sets = open_sets();
    std::vector<std::string_view> key;
    for (const auto i : d.key) {
        const auto* f = i < row.size() ? &row[i] : nullptr;
        if (f && f->what == pgoutput::field::kind::unchanged)
            f = before && i < before->size() ? &(*before)[i] : nullptr;
        if (!f || f->what != pgoutput::field::kind::text) return sets[d.table].count_whole();
        key.push_back(f->bytes);
    }
    sets[d.table].add(key);
    bound(sets, d.table);
}

void change_feed::bound(std::vector<key_set>& sets, std::size_t table) {
    if (sets[table].size() > limits_.keys_max) sets[table].count_whole();
    if (sets[table].bytes() <= limits_.bytes_max / tables_.size()) return;  // cannot be the sum's
    if (bytes_of(now_) + bytes_of(later_) > limits_.bytes_max) sets[table].count_whole();
}

bool change_feed::read_at(const snapshot_view& s) {
    if (!std::all_of(now_xids_.begin(), now_xids_.end(), [&](auto xid) { return s.sees(xid); }))
        return false;
    now_xids_.clear();
    snapshot_ = s;
    has_snapshot_ = true;
    return true;
}

void change_feed::forget_seen(const snapshot_view& s) {
    std::erase_if(now_xids_, [&](auto xid) { return s.sees(xid); });
}

std::vector<key_set> change_feed::take_pass() {
    std::vector<key_set> out(tables_.size());
    out.swap(now_);
    now_.swap(later_);
    now_xids_.swap(later_xids_);
    later_xids_.clear();
    has_snapshot_ = false;
    return out;
}

void change_feed::count_whole(std::size_t table) {
    now_[table].count_whole();
}

void change_feed::put_back(std::size_t table, const key_set& changes) {
    now_[table].add_all(changes);
    bound(now_, table);
}

}  // namespace hotlane::move
