#include "router/session/statements.hpp"

namespace hotlane::session {

statement_memory::pointer statement_memory::find(std::string_view name) const {
    if (name.empty()) return unnamed_;
    const auto found = named_.find(name);
    return found == named_.end() ? nullptr : found->second;
}

void statement_memory::put(pointer statement) {
    if (statement->name.empty()) {
        unnamed_ = std::move(statement);
        return;
    }
    erase(statement->name);
    bytes_ += statement->bytes();
    const auto& name = statement->name;
    named_.emplace(name, std::move(statement));
}

void statement_memory::erase(std::string_view name) {
    if (name.empty()) {
        unnamed_.reset();
        return;
    }
    const auto found = named_.find(name);
    if (found == named_.end()) return;
    bytes_ -= found->second->bytes();
    named_.erase(found);
}

void statement_memory::erase_exactly(const pointer& statement) {
    if (statement && find(statement->name) == statement) erase(statement->name);
}

void statement_memory::clear() {
    unnamed_.reset();
    named_.clear();
    bytes_ = 0;
}

statement_memory::pointer statement_memory::recycle_unnamed() {
    if (!unnamed_ || unnamed_.use_count() != 1) return std::make_shared<prepared>();
    auto old = std::move(unnamed_);
    old->told_parameters.reset();
    old->told_columns.reset();
    old->facts.reset();
    old->confirmed = old->result_changed = false;
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
