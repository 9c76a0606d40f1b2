// Remembered facts. Two maps: by the exact text, and by the shape of it, so that statements with
// literals written into them (every text is new) are parsed once for each shape, too.
#include <list>
#include <unordered_map>

#include "router/sql/analysis.hpp"
#include "router/sql/row_key.hpp"
#include "router/sql/shape.hpp"

namespace hotlane::sql {
namespace {

// Least recently used goes first, when there are too many entries or too many bytes of keys.
class bounded_map {
  public:
    bounded_map(std::size_t entries_max, std::size_t bytes_max)
        : entries_max_(entries_max), bytes_max_(bytes_max) {}

    std::shared_ptr<const facts> find(std::string_view key) {
        const auto at = index_.find(key);
        if (at == index_.end()) return nullptr;
        if (at->second != order_.begin()) order_.splice(order_.begin(), order_, at->second);
        return at->second->value;
    }

    void insert(std::string_view key, std::shared_ptr<const facts> value) {
        if (entries_max_ == 0 || key.size() > bytes_max_) return;
        order_.push_front({std::string(key), std::move(value)});
        index_.emplace(order_.front().key, order_.begin());
        bytes_ += key.size();
        while (order_.size() > entries_max_ || bytes_ > bytes_max_) {
            bytes_ -= order_.back().key.size();
            index_.erase(order_.back().key);
            order_.pop_back();
        }
    }

    std::size_t size() const { return order_.size(); }
    std::size_t bytes() const { return bytes_; }

  private:
    struct entry {
        std::string key;
        std::shared_ptr<const facts> value;
    };
    std::size_t entries_max_;
    std::size_t bytes_max_;
    std::size_t bytes_{0};
    std::list<entry> order_;  // most recently used first
    std::unordered_map<std::string_view, std::list<entry>::iterator> index_;  // views into order_
};

// The facts of a shape, placed where this text has the statement.
std::shared_ptr<const facts> placed(const facts& of_shape,
                                    std::string_view sql,
                                    const std::vector<token>& tokens) {
    auto out = std::make_shared<facts>(of_shape);
    std::size_t first = 0;
    std::size_t last = tokens.size();
    while (first < last && tokens[first].what == lexeme::semicolon)
        ++first;
    while (last > first && tokens[last - 1].what == lexeme::semicolon)
        --last;
    out->statements.front().begin = tokens[first].begin;
    out->statements.front().end = tokens[last - 1].end;
    // Which row it writes is in its literals, which the shape leaves out.
    if (out->statements.front().key_from == statement::keyed::literals)
        find_row_key(sql, tokens, out->statements.front());
    return out;
}

}  // namespace

struct facts_cache::implementation {
    implementation(const cache_limits& limits)
        : bounds(limits),
          texts(limits.entries_max, limits.total_bytes_max),
          shapes(limits.entries_max, limits.total_bytes_max) {}

    std::shared_ptr<const facts> look_closer(std::string_view sql) {
        const std::vector<token> tokens = tokenize(sql);
        std::string shape = shape_of(sql, tokens);
        if (const auto known = shapes.find(shape)) {
            ++counters.shape_hits;
            return placed(*known, sql, tokens);
        }
        ++counters.misses;
        analysis fresh = analyze_tokens(sql, tokens, std::move(shape));
        auto& statements = fresh.found.statements;
        if (fresh.shape_decides) find_row_key(sql, tokens, statements.front());
        auto found = std::make_shared<const facts>(std::move(fresh.found));
        if (fresh.shape_decides && fresh.shape.size() <= bounds.text_bytes_max)
            shapes.insert(fresh.shape, found);
        return found;
    }

    cache_limits bounds;
    bounded_map texts;
    bounded_map shapes;
    cache_counters counters;
};

facts_cache::facts_cache(std::size_t entries_max, std::size_t text_bytes_max)
    : facts_cache(cache_limits{entries_max, text_bytes_max}) {}
facts_cache::facts_cache(const cache_limits& limits)
    : self_(std::make_unique<implementation>(limits)) {}
facts_cache::~facts_cache() = default;

std::shared_ptr<const facts> facts_cache::get(std::string_view sql) {
    const bool remembered = sql.size() <= self_->bounds.text_bytes_max;
    if (remembered) {
        if (auto known = self_->texts.find(sql)) {
            ++self_->counters.hits;
            return known;
        }
    } else {
        ++self_->counters.too_long;
    }
    auto found = self_->look_closer(sql);
    if (remembered) self_->texts.insert(sql, found);
    return found;
}

cache_counters facts_cache::counters() const {
    cache_counters out = self_->counters;
    out.entries = self_->texts.size() + self_->shapes.size();
    out.bytes = self_->texts.bytes() + self_->shapes.bytes();
    return out;
}

}  // namespace hotlane::sql
