// Remembered facts. Statements with literals written into them come by the thousand, every text
// new, so what is remembered is the shape of a text; the text itself only where its facts depend on
// a literal or on several statements. Before a shape is made, the text is laid beside a few that
// were seen lately.
#include <array>
#include <list>
#include <unordered_map>

#include "router/sql/analysis.hpp"
#include "router/sql/row_key.hpp"
#include "router/sql/shape.hpp"

namespace hotlane::sql {
namespace {

using facts_ptr = std::shared_ptr<const facts>;

struct hashed {
    explicit hashed(std::string_view of) : text(of), hash(std::hash<std::string_view>()(of)) {}
    std::string_view text;
    std::size_t hash;
    friend bool operator==(const hashed& a, const hashed& b) { return a.text == b.text; }
};

struct hash_of {
    std::size_t operator()(const hashed& one) const noexcept { return one.hash; }
};

// The facts of a shape, and the same placed where texts of it have had the statement lately.
struct shape_facts {
    facts_ptr value;
    std::array<facts_ptr, 2> placed;  // two lengths of a number, mostly
    std::uint32_t next{0};

    facts_ptr find(std::uint32_t begin, std::uint32_t end) const {
        for (const auto& one : placed)
            if (one && one->statements.front().begin == begin && one->statements.front().end == end)
                return one;
        return nullptr;
    }
    void keep(facts_ptr one) { placed[next++ % placed.size()] = std::move(one); }
};
using shape_ptr = std::shared_ptr<shape_facts>;

// Least recently used goes first, when there are too many entries or too many bytes of keys.
template <class Value>
class bounded_map {
  public:
    bounded_map(std::size_t entries_max, std::size_t bytes_max)
        : entries_max_(entries_max), bytes_max_(bytes_max) {}

    Value find(const hashed& key) {
        const auto at = index_.find(key);
        if (at == index_.end()) return nullptr;
        if (at->second != order_.begin()) order_.splice(order_.begin(), order_, at->second);
        return at->second->value;
    }

    void insert(const hashed& key, Value value) {
        if (entries_max_ == 0 || key.text.size() > bytes_max_) return;
        order_.push_front({std::string(key.text), key.hash, std::move(value)});
        index_.emplace(of(order_.front()), order_.begin());
        bytes_ += key.text.size();
        while (order_.size() > entries_max_ || bytes_ > bytes_max_) {
            bytes_ -= order_.back().key.size();
            index_.erase(of(order_.back()));
            order_.pop_back();
        }
    }

    std::size_t size() const { return order_.size(); }
    std::size_t bytes() const { return bytes_; }

  private:
    struct entry {
        std::string key;
        std::size_t hash;
        Value value;
    };

    static hashed of(const entry& one) {
        hashed key{std::string_view()};
        key.text = one.key;
        key.hash = one.hash;
        return key;
    }

    std::size_t entries_max_;
    std::size_t bytes_max_;
    std::size_t bytes_{0};
    std::list<entry> order_;  // most recently used first
    std::unordered_map<hashed, typename std::list<entry>::iterator, hash_of> index_;
};

// Whether a text was seen before: the last one of each place.
class doorkeeper {
  public:
    bool has_seen(std::size_t hash) {
        auto& place = seen_[hash % seen_.size()];
        const bool known = place == hash;
        place = hash;
        return known;
    }

  private:
    std::array<std::size_t, 1'024> seen_{};
};

// Texts of shapes that are in use, the last few of each beginning: most that come differ from one
// of them in a number, which is seen faster than a shape is made.
class examples {
  public:
    static constexpr std::size_t text_max = 1'024;

    struct example {
        std::string text;
        std::vector<token> tokens;
        shape_ptr shape;
        facts_ptr own;
    };

    // `tokens` gets those of `sql`.
    const example* find(std::string_view sql, std::vector<token>& tokens) const {
        for (const auto& one : sets_[place_of(sql)].ways)
            if (one.shape && differs_in_literals_only(one.text, one.tokens, sql, tokens))
                return &one;
        return nullptr;
    }
    void keep(std::string_view sql,
              const std::vector<token>& tokens,
              const shape_ptr& shape,
              const facts_ptr& own) {
        if (sql.size() > text_max) return;
        auto& of = sets_[place_of(sql)];
        of.ways[of.next++ % of.ways.size()] = {
            std::string(sql), {tokens.begin(), tokens.end()}, shape, own};
    }

  private:
    struct ways_of {
        std::array<example, 4> ways;
        std::uint32_t next{0};
    };

    // By what stands before the first value.
    static std::size_t place_of(std::string_view sql) {
        std::size_t hash = 0;
        for (const char c : sql.substr(0, 48)) {
            if ((c >= '0' && c <= '9') || c == '\'') break;
            hash = hash * 31 + static_cast<unsigned char>(c);
        }
        return (hash ^ (hash >> 17U)) % places;
    }

    static constexpr std::size_t places = 64;
    std::vector<ways_of> sets_{places};
};

// The facts of a shape, placed where this text has the statement.
facts_ptr place(shape_facts& shape, std::string_view sql, const std::vector<token>& tokens) {
    std::size_t first = 0;
    std::size_t last = tokens.size();
    while (first < last && tokens[first].what == lexeme::semicolon)
        ++first;
    while (last > first && tokens[last - 1].what == lexeme::semicolon)
        --last;
    const auto begin = tokens[first].begin;
    const auto end = tokens[last - 1].end;
    // Which row it writes is in its literals, which the shape leaves out.
    const bool keyed = shape.value->statements.front().key_from == statement::keyed::literals;
    if (!keyed) {
        if (auto known = shape.find(begin, end)) return known;
    }
    auto out = std::make_shared<facts>(*shape.value);
    out->statements.front().begin = begin;
    out->statements.front().end = end;
    if (keyed)
        find_row_key(sql, tokens, out->statements.front());
    else
        shape.keep(out);
    return out;
}

}  // namespace

struct facts_cache::implementation {
    implementation(const cache_limits& limits)
        : bounds(limits),
          texts(limits.entries_max, limits.total_bytes_max),
          shapes(limits.entries_max, limits.total_bytes_max) {}

    facts_ptr get(std::string_view sql) {
        if (const auto* const alike = like.find(sql, tokens)) {
            if (alike->text == sql) {
                ++counters.hits;
                return alike->own;
            }
            ++counters.shape_hits;
            return place(*alike->shape, sql, tokens);
        }
        const hashed key(sql);
        const bool remembered = sql.size() <= bounds.text_bytes_max;
        if (auto known = remembered ? texts.find(key) : nullptr) {
            ++counters.hits;
            return known;
        }
        if (!remembered) ++counters.too_long;
        tokenize(sql, tokens);
        shape_of(sql, tokens, shape);
        const hashed of_shape(shape);
        if (auto known = shapes.find(of_shape)) {
            ++counters.shape_hits;
            auto found = place(*known, sql, tokens);
            like.keep(sql, tokens, known, found);
            return found;
        }
        return learn(sql, key, of_shape, remembered);
    }

    facts_ptr learn(std::string_view sql,
                    const hashed& key,
                    const hashed& of_shape,
                    bool remembered) {
        ++counters.misses;
        analysis fresh = analyze_tokens(sql, tokens, shape);
        const bool decides = fresh.shape_decides;
        if (decides) find_row_key(sql, tokens, fresh.found.statements.front());
        auto found = std::make_shared<const facts>(std::move(fresh.found));
        if (decides && shape.size() <= bounds.text_bytes_max) {
            auto made = std::make_shared<shape_facts>();
            made->value = found;
            shapes.insert(of_shape, made);
            like.keep(sql, tokens, made, found);
        } else if (remembered) {
            texts.insert(key, found);
        }
        return found;
    }

    // Memory for one long text must not stay.
    void tidy() {
        if (tokens.capacity() > tokens_kept) std::vector<token>().swap(tokens);
        if (shape.capacity() > shape_kept) std::string().swap(shape);
    }

    static constexpr std::size_t tokens_kept = 4'096, shape_kept = 65'536;

    cache_limits bounds;
    bounded_map<facts_ptr> texts;
    bounded_map<shape_ptr> shapes;
    examples like;
    cache_counters counters;
    std::vector<token> tokens;  // of the text at hand
    std::string shape;
};

facts_cache::facts_cache(std::size_t entries_max, std::size_t text_bytes_max)
    : facts_cache(cache_limits{entries_max, text_bytes_max}) {}
facts_cache::facts_cache(const cache_limits& limits)
    : self_(std::make_unique<implementation>(limits)) {}
facts_cache::~facts_cache() = default;

std::shared_ptr<const facts> facts_cache::get(std::string_view sql) {
    auto found = self_->get(sql);
    self_->tidy();
    return found;
}

cache_counters facts_cache::counters() const {
    cache_counters out = self_->counters;
    out.entries = self_->texts.size() + self_->shapes.size();
    out.bytes = self_->texts.bytes() + self_->shapes.bytes();
    return out;
}

}  // namespace hotlane::sql
