#include "router/session/statements.hpp"

#include <algorithm>
#include <unordered_set>

namespace hotlane::session {
namespace {

struct text_view {
    std::string_view sql;
    std::span<const std::uint32_t> parameters;
};

struct text_hash {
    using is_transparent = void;
    std::size_t operator()(const text_view& one) const noexcept {
        auto value = std::hash<std::string_view>{}(one.sql);
        for (const auto type : one.parameters)
            value = value * 31 + type;
        return value;
    }
    std::size_t operator()(const statement_text* one) const noexcept {
        return (*this)(text_view{one->sql, one->parameters});
    }
};

struct text_equal {
    using is_transparent = void;
    bool operator()(const statement_text* a, const statement_text* b) const noexcept {
        return a == b;
    }
    bool operator()(const text_view& a, const statement_text* b) const noexcept {
        return a.sql == b->sql && std::equal(a.parameters.begin(),
                                             a.parameters.end(),
                                             b->parameters.begin(),
                                             b->parameters.end());
    }
    bool operator()(const statement_text* a, const text_view& b) const noexcept {
        return (*this)(b, a);
    }
};

struct text_entry : statement_text {
    std::weak_ptr<const statement_text> self;
};

// Held by its entries too, so that it outlives the last of them.
struct text_table {
    std::unordered_set<text_entry*, text_hash, text_equal> all;
    std::uint64_t last_id{0};
};

const std::shared_ptr<text_table>& interned() {
    thread_local const auto one = std::make_shared<text_table>();
    return one;
}

}  // namespace

std::shared_ptr<const statement_text> intern(std::string_view sql,
                                             std::span<const std::uint32_t> parameters) {
    const auto& table = interned();
    if (const auto found = table->all.find(text_view{sql, parameters}); found != table->all.end())
        return (*found)->self.lock();
    auto* const entry = new text_entry;
    std::shared_ptr<const statement_text> made(entry, [table](const statement_text* gone) {
        auto* const mine = const_cast<text_entry*>(static_cast<const text_entry*>(gone));
        table->all.erase(mine);
        delete mine;
    });
    entry->id = ++table->last_id;
    entry->sql = sql;
    entry->parameters.assign(parameters.begin(), parameters.end());
    entry->self = made;
    table->all.insert(entry);
    return made;
}

std::size_t interned_count() noexcept {
    return interned()->all.size();
}

statement_memory::pointer statement_memory::find(std::string_view name) const {
    if (name.empty()) return unnamed_;
    const auto found = named_.find(name);
    return found == named_.end() ? nullptr : found->second;
}

statement_memory::pointer statement_memory::expect(std::string_view name) const {
    if (name.empty()) return sent_unnamed_ ? sent_unnamed_->statement : unnamed_;
    if (const auto found = sent_.find(name); found != sent_.end()) return found->second.statement;
    return find(name);
}

bool statement_memory::is_unsure(std::string_view name) const {
    if (name.empty()) return sent_unnamed_ && sent_unnamed_->batch != batch_;
    const auto found = sent_.find(name);
    return found != sent_.end() && found->second.batch != batch_;
}

void statement_memory::sent(const pointer& statement) {
    if (statement->name.empty())
        sent_unnamed_ = {statement, batch_};
    else
        sent_.insert_or_assign(statement->name, change{statement, batch_});
}

void statement_memory::closing(std::string_view name) {
    if (name.empty())
        sent_unnamed_ = {nullptr, batch_};
    else
        sent_.insert_or_assign(std::string(name), change{nullptr, batch_});
}

void statement_memory::doubt_sent() {
    if (sent_unnamed_) sent_unnamed_->batch = batch_ - 1;
    for (auto& [name, one] : sent_)
        one.batch = batch_ - 1;
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
    old->text.reset();
    old->told_parameters.reset();
    old->told_columns.reset();
    old->facts.reset();
    old->result_changed = old->drops = false;
    old->refused.reset();
    old->original.reset();
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
