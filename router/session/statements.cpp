#include "router/session/statements.hpp"

namespace hotlane::session {

statement_memory::pointer statement_memory::find(std::string_view name) const {
    if (name.empty()) return unnamed_;
    const auto found = named_.find(name);
    return found == named_.end() ? nullptr : found->second;
}

statement_memory::pointer statement_memory::expect(std::string_view name) const {
    if (name.empty()) return sent_unnamed_ ? *sent_unnamed_ : unnamed_;
    if (const auto found = sent_.find(name); found != sent_.end()) return found->second;
    return find(name);
}

void statement_memory::sent(const pointer& statement) {
    if (statement->name.empty())
        sent_unnamed_ = statement;
    else
        sent_.insert_or_assign(statement->name, statement);
}

void statement_memory::closing(std::string_view name) {
    if (name.empty())
        sent_unnamed_ = pointer{};
    else
        sent_.insert_or_assign(std::string(name), nullptr);
}

void statement_memory::forget_sent() {
    sent_unnamed_.reset();
    if (!sent_.empty()) sent_.clear();
}

void statement_memory::put(pointer statement) {
    if (statement->name.empty()) {
        if (unnamed_ != statement) spare_ = std::exchange(unnamed_, std::move(statement));
        return;
    }
    erase(statement->name);
    bytes_ += statement->bytes();
    const auto& name = statement->name;
    named_.emplace(name, std::move(statement));
}

void statement_memory::erase(std::string_view name) {
    if (name.empty()) {
        if (unnamed_) spare_ = std::move(unnamed_);
        unnamed_.reset();
        return;
    }
    const auto found = named_.find(name);
    if (found == named_.end()) return;
    bytes_ -= found->second->bytes();
    named_.erase(found);
}

void statement_memory::grew(const prepared& statement, std::size_t bytes_before) {
    const auto found = named_.find(statement.name);
    if (found != named_.end() && found->second.get() == &statement)
        bytes_ = bytes_ - bytes_before + statement.bytes();
}

void statement_memory::clear() {
    unnamed_.reset();
    named_.clear();
    bytes_ = 0;
}

statement_memory::pointer statement_memory::spare() {
    if (!spare_ || spare_.use_count() != 1) return std::make_shared<prepared>();
    auto old = std::move(spare_);
    old->told_parameters.reset();
    old->told_columns.reset();
    old->facts.reset();
    old->result_changed = false;
    old->refused.reset();
    return old;
}

std::vector<statement_memory::pointer> statement_memory::all() const {
    std::vector<pointer> result;
    result.reserve(named_.size() + 1);
    for (const auto& [name, statement] : named_)
        result.push_back(statement);
    if (unnamed_) result.push_back(unnamed_);
    return result;
}

}  // namespace hotlane::session
