#include "router/session/link_memory.hpp"

#include <algorithm>
#include <array>

#include "router/wire/message.hpp"

namespace hotlane::session {
namespace {

constexpr std::size_t told_statuses_max = 200;
constexpr std::size_t status_bytes_max = 8 * 1024;

}  // namespace

// Few differ: by user, by application_name, by what clients set. Where many do, some are not found.
pairs_ptr shared_list(pairs_ptr list) {
    constexpr std::size_t lists_max = 32;
    thread_local std::array<std::weak_ptr<const pairs>, lists_max> known;
    thread_local std::size_t next = 0;
    if (!list) return list;
    std::weak_ptr<const pairs>* free = nullptr;
    for (auto& one : known) {
        const auto there = one.lock();
        if (there && *there == *list) return there;
        if (!there) free = &one;
    }
    auto& place = free ? *free : known[next++ % lists_max];
    place = list;
    return list;
}

pairs_ptr with_status(const pairs_ptr& all, std::string_view name, std::string_view value) {
    if (name.size() + value.size() > status_bytes_max) return all;
    static const pairs none;
    const auto& list = all ? *all : none;
    const auto known =
        std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.first == name; });
    const bool is_known = known != list.end();
    if (is_known ? known->second == value : list.size() >= told_statuses_max) return all;
    auto copy = std::make_shared<pairs>(list);
    if (is_known)
        (*copy)[static_cast<std::size_t>(known - list.begin())].second = value;
    else
        copy->emplace_back(name, value);
    return copy;
}

bool take_idle_bytes(link_memory& link, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto frame = wire::scan_frame(bytes);
        if (frame.status != wire::scan_status::complete) return false;
        if (frame.header.tag == wire::tag_b::parameter_status) {
            const auto status = wire::decode_parameter_status(frame.body);
            if (!status) return false;
            link.status = with_status(link.status, status->name, status->value);
        } else if (frame.header.tag != wire::tag_b::notice) {
            return false;
        }
        bytes.remove_prefix(frame.header.total_size());
    }
    return true;
}

bool link_identity::sets(std::string_view parameter) const {
    return std::any_of(parameters.begin(), parameters.end(), [&](const auto& one) {
        return one.first == parameter ||
               (one.first == "options" && one.second.find(parameter) != std::string::npos);
    });
}

// No part of a startup packet can hold a zero byte.
std::string link_identity::key() const {
    std::string out = user;
    out.push_back('\0');
    out += database;
    for (const auto& [name, value] : parameters) {
        out.push_back('\0');
        out += name;
        out.push_back('\0');
        out += value;
    }
    return out;
}

link_statements::slot* link_statements::find(const prepared& statement) {
    slot* found = nullptr;
    if (statement.name.empty()) {
        if (unnamed_.text == statement.text) found = &unnamed_;
    } else if (const auto at = named_.find(statement.text->id); at != named_.end()) {
        found = &at->second;
    }
    if (found) found->used = turn;
    return found;
}

link_statements::slot& link_statements::put(const std::string& name,
                                            std::shared_ptr<const statement_text> text) {
    const auto id = text->id;
    auto& at = name.empty() ? unnamed_ : named_[id];
    at = {.text = std::move(text), .columns = nullptr, .asked = false, .used = turn, .made = turn};
    return at;
}

void link_statements::erase(const prepared& statement) {
    if (statement.name.empty())
        drop_unnamed();
    else
        named_.erase(statement.text->id);
}

void link_statements::clear() {
    named_.clear();
    drop_unnamed();
}

std::shared_ptr<const statement_text> link_statements::oldest() const {
    const slot* found = nullptr;
    for (const auto& [id, one] : named_)
        if (one.used != turn && (!found || one.used < found->used)) found = &one;
    return found ? found->text : nullptr;
}

}  // namespace hotlane::session
