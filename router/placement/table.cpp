// Which tool a client belongs to: rules with globs, and templates that make tools as clients come.
#include <algorithm>
#include <tuple>
#include <utility>

#include "router/placement/route.hpp"

namespace hotlane::placement {

namespace {

bool matches(const config::match_rule& rule, const client_identity& who) {
    const auto fits = [](const std::string& pattern, const std::string& text) {
        return pattern.empty() || glob_match(pattern, text);
    };
    return fits(rule.database, who.database) && fits(rule.user, who.user) &&
           fits(rule.application_name, who.application_name);
}

// Replaces the places in one text. False: see fill_template.
bool fill(std::string& text, const client_identity& who) {
    const std::pair<std::string_view, const std::string&> places[] = {
        {"{database}", who.database},
        {"{user}", who.user},
        {"{application_name}", who.application_name},
    };
    std::string filled;
    std::string_view rest = text;
    for (auto brace = rest.find('{'); brace != rest.npos; brace = rest.find('{')) {
        filled.append(rest.substr(0, brace));
        rest.remove_prefix(brace);
        const auto* const place =
            std::find_if(std::begin(places), std::end(places), [&](const auto& p) {
                return rest.starts_with(p.first);
            });
        if (place == std::end(places) || !is_plain_name(place->second)) return false;
        filled.append(place->second);
        rest.remove_prefix(place->first.size());
    }
    filled.append(rest);
    text = std::move(filled);
    return true;
}

// What makes two fillings of one template the same tool.
bool same_homes(const config::tool& a, const config::tool& b) {
    const auto engine = [](const config::tool& t) {
        return std::tie(t.engine.at.host, t.engine.at.port, t.engine.user, t.engine.database);
    };
    if (engine(a) != engine(b) || a.postgres.has_value() != b.postgres.has_value()) return false;
    if (!a.postgres) return true;
    const auto postgres = [](const config::postgres_home& p) {
        return std::tie(p.server, p.database, p.schema, p.role);
    };
    return postgres(*a.postgres) == postgres(*b.postgres);
}

}  // namespace

bool is_plain_name(std::string_view text) noexcept {
    if (text.empty() || text.size() > 63 || text == "." || text == "..") return false;
    return std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '.' || c == '-';
    });
}

std::optional<config::tool> fill_template(const config::tool& pattern, const client_identity& who) {
    config::tool made = pattern;
    std::vector<std::string*> texts{&made.name,
                                    &made.engine.at.host,
                                    &made.engine.user,
                                    &made.engine.database,
                                    &made.schema_file};
    if (made.postgres) {
        texts.insert(texts.end(),
                     {&made.postgres->database, &made.postgres->schema, &made.postgres->role});
    }
    const bool good = std::all_of(
        texts.begin(), texts.end(), [&](std::string* text) { return fill(*text, who); });
    if (!good) return std::nullopt;
    return made;
}

// Greedy with one point of return: after a star matched, only the last star can be wrong.
bool glob_match(std::string_view pattern, std::string_view text) noexcept {
    std::size_t p = 0;
    std::size_t t = 0;
    std::size_t star = pattern.npos;
    std::size_t resume = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p;
            ++t;
        } else if (star != pattern.npos) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*')
        ++p;
    return p == pattern.size();
}

tool_table::tool_table(const config::model& model, std::size_t template_tools_max)
    : rules_(model.tools), limit_(model.limit), template_tools_max_(template_tools_max) {
    for (std::size_t rule = 0; rule < rules_.size(); ++rule) {
        if (rules_[rule].is_template()) continue;
        tools_.emplace(rules_[rule].name, placed{rule, make(rules_[rule])});
    }
}

std::shared_ptr<tool_entry> tool_table::make(const config::tool& settings) const {
    auto entry = std::make_shared<tool_entry>();
    entry->name = settings.name;
    entry->settings = settings;
    entry->gate.set_bounds(limit_.held_clients, limit_.held_bytes);
    statement_book::bounds book;
    book.statements = static_cast<std::size_t>(limit_.statements_per_tool);
    book.sample_bytes = limit_.statement_sample_bytes;
    book.lately = std::chrono::duration_cast<policy::duration>(limit_.statements_kept);
    entry->statements.set_bounds(book);
    return entry;
}

std::shared_ptr<tool_entry> tool_table::resolve(const client_identity& who) {
    client_identity asked = who;
    if (asked.database.empty()) asked.database = asked.user;  // as PostgreSQL does
    const std::lock_guard lock(mutex_);
    for (std::size_t rule = 0; rule < rules_.size(); ++rule) {
        if (!matches(rules_[rule].match, asked)) continue;
        if (rules_[rule].is_template()) return from_template(rule, asked);
        const auto found = tools_.find(rules_[rule].name);
        return found == tools_.end() ? nullptr : found->second.entry;
    }
    return nullptr;
}

// Under the mutex. A name that another rule owns, or that stands for other homes, is nobody's: a
// client never reaches the data of a tool that its own rule does not describe.
std::shared_ptr<tool_entry> tool_table::from_template(std::size_t rule,
                                                      const client_identity& who) {
    const auto settings = fill_template(rules_[rule], who);
    if (!settings) return nullptr;
    const auto found = tools_.find(settings->name);
    if (found != tools_.end()) {
        const auto& there = found->second;
        const bool same = there.rule == rule && same_homes(there.entry->settings, *settings);
        return same ? there.entry : nullptr;
    }
    if (template_tools_ >= template_tools_max_) {
        limit_hits_.fetch_add(1, std::memory_order_relaxed);
        return nullptr;
    }
    auto entry = make(*settings);
    if (on_new) on_new(*entry);
    tools_.emplace(settings->name, placed{rule, entry});
    ++template_tools_;
    return entry;
}

std::shared_ptr<tool_entry> tool_table::add(const config::tool& settings) {
    const std::lock_guard lock(mutex_);
    if (tools_.count(settings.name) > 0) return nullptr;
    rules_.push_back(settings);
    if (settings.is_template()) return nullptr;
    auto entry = make(settings);
    tools_.emplace(settings.name, placed{rules_.size() - 1, entry});
    return entry;
}

std::shared_ptr<tool_entry> tool_table::find(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = tools_.find(name);
    return found == tools_.end() ? nullptr : found->second.entry;
}

std::vector<std::shared_ptr<tool_entry>> tool_table::all() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<tool_entry>> entries;
    entries.reserve(tools_.size());
    for (const auto& [name, there] : tools_)
        entries.push_back(there.entry);
    return entries;
}

}  // namespace hotlane::placement
