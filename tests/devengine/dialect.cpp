#include "tests/devengine/dialect.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "tests/devengine/refusals.hpp"

namespace hotlane::devengine {

namespace {

struct piece {
    std::string text;
    bool space_before{false};
    token_kind kind{token_kind::symbol};
};

// Where the operand that ends at the last piece begins: `x`, `t.x`, `f(..)`, `(..)`, `'..'`.
std::size_t operand_begin(const std::vector<piece>& pieces) {
    std::size_t at = pieces.size() - 1;
    if (pieces[at].text == ")") {
        int depth = 0;
        for (;; --at) {
            if (pieces[at].text == ")") ++depth;
            if (pieces[at].text == "(" && --depth == 0) break;
            if (at == 0) return 0;
        }
        const bool called = at > 0 && pieces[at - 1].kind == token_kind::word;
        return called ? at - 1 : at;
    }
    while (at >= 2 && pieces[at - 1].text == ".")
        at -= 2;
    return at;
}

// The tokens of a type name after `::`, as one string.
std::string read_type(const std::vector<token>& tokens, std::size_t& at) {
    if (at >= tokens.size() || !tokens[at].is_name()) return {};
    std::string type = tokens[at++].name();
    if (at < tokens.size() && (tokens[at].is("PRECISION") || tokens[at].is("VARYING"))) ++at;
    if (at < tokens.size() && tokens[at].is_symbol("(")) {
        while (at < tokens.size() && !tokens[at].is_symbol(")"))
            type += tokens[at++].text;
        if (at < tokens.size()) type += tokens[at++].text;
    }
    return type;
}

std::string sqlite_type(std::string_view declared) {
    const auto type = storage_type(declared);
    return type.starts_with("vector") ? type : upper(type);
}

bool opens_column(const std::vector<token>& tokens, std::size_t at) {
    return at >= 1 && (tokens[at - 1].is_symbol("(") || tokens[at - 1].is_symbol(","));
}

class rewriter {
  public:
    explicit rewriter(statement& out) : out_(out), tokens_(out.tokens) {}

    void run() {
        is_create_ = tokens_.size() > 1 && tokens_[0].is("CREATE") && tokens_[1].is("TABLE");
        while (at_ < tokens_.size())
            step();
        for (const auto& p : pieces_) {
            if (p.space_before && !out_.sql.empty()) out_.sql.push_back(' ');
            out_.sql += p.text;
        }
    }

  private:
    void step() {
        const auto& t = tokens_[at_];
        if (t.is_symbol("(")) ++depth_;
        if (t.is_symbol(")")) --depth_;
        if (t.is_symbol("::") && !pieces_.empty()) {
            cast();
        } else if (t.kind == token_kind::parameter) {
            parameter(t);
        } else if (is_create_ && depth_ == 1 && t.is_name() && opens_column(tokens_, at_)) {
            column();
        } else if (t.kind == token_kind::comment) {
            ++at_;
        } else {
            pieces_.push_back({std::string(t.text), t.space_before, t.kind});
            ++at_;
        }
    }

    void cast() {
        ++at_;
        const auto begin = operand_begin(pieces_);
        const auto type = read_type(tokens_, at_);
        const bool space = pieces_[begin].space_before;
        const auto& operand = pieces_.back();
        if (operand.kind == token_kind::parameter && pieces_.size() - begin == 1)
            note_cast(operand.text, type);
        const auto place = pieces_.begin() + static_cast<std::ptrdiff_t>(begin);
        pieces_.insert(place, {{"CAST", space, token_kind::word}, {"(", false}});
        pieces_.push_back({"AS", true, token_kind::word});
        pieces_.push_back({sqlite_type(type), true});
        pieces_.push_back({")", false});
    }

    void note_cast(std::string_view parameter, const std::string& type) {
        std::size_t number = 0;
        std::from_chars(parameter.data() + 1, parameter.data() + parameter.size(), number);
        if (number == 0 || number > out_.parameter_casts.size()) return;
        out_.parameter_casts[number - 1] = type;
    }

    void parameter(const token& t) {
        int number = 0;
        std::from_chars(t.text.data() + 1, t.text.data() + t.text.size(), number);
        out_.parameters = std::max(out_.parameters, number);
        if (number > 0) {
            const auto count = static_cast<std::size_t>(out_.parameters);
            out_.parameter_casts.resize(std::max(out_.parameter_casts.size(), count));
        }
        pieces_.push_back({"?" + std::to_string(number), t.space_before, t.kind});
        ++at_;
    }

    // A column of CREATE TABLE: its declared type becomes an affinity that SQLite knows.
    void column() {
        static constexpr std::array<std::string_view, 5> constraints{
            "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT"};
        const auto& name = tokens_[at_];
        pieces_.push_back({std::string(name.text), name.space_before, name.kind});
        ++at_;
        const bool constraint = std::any_of(
            constraints.begin(), constraints.end(), [&](auto word) { return name.is(word); });
        if (constraint || at_ >= tokens_.size() || tokens_[at_].kind != token_kind::word) return;
        const auto& word = tokens_[at_];
        if (std::any_of(
                constraints.begin(), constraints.end(), [&](auto c) { return word.is(c); }) ||
            word.is("NOT") || word.is("NULL") || word.is("DEFAULT") || word.is("REFERENCES") ||
            word.is("COLLATE"))
            return;
        const bool serial = upper(word.text).find("SERIAL") != std::string::npos;
        const auto type = serial ? std::string("INTEGER") : sqlite_type(read_type(tokens_, at_));
        if (serial) ++at_;
        if (at_ + 2 < tokens_.size() && tokens_[at_ + 1].is("TIME") && tokens_[at_ + 2].is("ZONE"))
            at_ += 3;
        pieces_.push_back({type, true, token_kind::word});
    }

    statement& out_;
    const std::vector<token>& tokens_;
    std::vector<piece> pieces_;
    std::size_t at_{0};
    int depth_{0};
    bool is_create_{false};
};

// The verb of a WITH statement is the first one outside parentheses.
std::string verb_after_with(const std::vector<token>& tokens) {
    int depth = 0;
    for (const auto& t : tokens) {
        if (t.is_symbol("(")) ++depth;
        if (t.is_symbol(")")) --depth;
        if (depth == 0 && (t.is("SELECT") || t.is("INSERT") || t.is("UPDATE") || t.is("DELETE")))
            return upper(t.text);
    }
    return "SELECT";
}

void find_tables(statement& s) {
    for (std::size_t i = 0; i + 1 < s.tokens.size(); ++i) {
        const auto& t = s.tokens[i];
        if (!(t.is("FROM") || t.is("JOIN") || t.is("INTO") || t.is("UPDATE") || t.is("TABLE")))
            continue;
        std::size_t at = i + 1;
        while (at + 1 < s.tokens.size() &&
               (s.tokens[at].is("IF") || s.tokens[at].is("NOT") || s.tokens[at].is("EXISTS")))
            ++at;
        const auto& name = s.tokens[at];
        if (name.is_name() && !name.is("SET") && !name.is("SELECT"))
            s.tables.push_back(name.name());
    }
    s.uses_stats = std::any_of(s.tables.begin(), s.tables.end(), [](const auto& table) {
        return upper(table) == "TWILL_STATS";
    });
}

void classify_ddl(statement& s) {
    const auto& tokens = s.tokens;
    s.kind = statement_kind::ddl;
    if (tokens[0].is("ALTER")) {
        s.verb = "ALTER";
        if (tokens.size() == 6 && tokens[3].is("RENAME") && tokens[4].is("TO"))
            s.rename_to = tokens[5].name();
        return;
    }
    const auto& object = tokens[1].is("UNIQUE") ? tokens[2] : tokens[1];
    s.verb = upper(tokens[0].text) + " " + upper(object.text);
    if (tokens[0].is("CREATE") && object.is("TABLE") && tokens[2].is("IF") && !s.tables.empty())
        s.create_if_absent = s.tables.front();
}

void classify_transaction(statement& s) {
    const auto& tokens = s.tokens;
    const auto& verb = tokens[0];
    const auto name_at_end = [&] { return tokens.size() > 1 ? tokens.back().name() : ""; };
    s.verb = upper(verb.text);
    if (verb.is("BEGIN") || verb.is("START")) {
        s.kind = statement_kind::begin;
        s.verb = verb.is("BEGIN") ? "BEGIN" : "START TRANSACTION";
    } else if (verb.is("COMMIT") || verb.is("END")) {
        s.kind = statement_kind::commit;
        s.verb = "COMMIT";
    } else if (verb.is("SAVEPOINT")) {
        s.kind = statement_kind::savepoint;
        s.name = name_at_end();
    } else if (verb.is("RELEASE")) {
        s.kind = statement_kind::release;
        s.name = name_at_end();
    } else {
        const bool to =
            std::any_of(tokens.begin(), tokens.end(), [](auto& t) { return t.is("TO"); });
        s.kind = to ? statement_kind::rollback_to : statement_kind::rollback;
        s.verb = "ROLLBACK";
        s.name = to ? name_at_end() : "";
    }
}

// A dotted name such as `twill.stats`, joined.
std::string dotted_name(const std::vector<token>& tokens) {
    std::string name;
    for (std::size_t i = 1; i < tokens.size(); ++i)
        name += tokens[i].name();
    return name;
}

void classify(statement& s) {
    const auto& verb = s.tokens[0];
    const auto one_of = [&](auto... words) { return (verb.is(words) || ...); };
    if (one_of("CREATE", "DROP", "ALTER")) return classify_ddl(s);
    if (one_of("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"))
        return classify_transaction(s);
    s.verb = upper(verb.text);
    if (one_of("SHOW")) {
        s.kind = statement_kind::show;
        s.name = dotted_name(s.tokens);
    } else if (one_of("SET", "DISCARD", "LISTEN", "UNLISTEN")) {
        s.kind = statement_kind::nothing;
        if (verb.is("DISCARD") && s.tokens.size() > 1) s.verb += " " + upper(s.tokens[1].text);
    } else {
        if (one_of("WITH")) s.verb = verb_after_with(s.tokens);
        if (one_of("VALUES", "TABLE") || verb.is_symbol("(")) s.verb = "SELECT";
        s.kind = s.verb == "SELECT" ? statement_kind::read : statement_kind::write;
    }
}

result<statement> parse_tokens(const std::vector<token>& tokens) {
    if (const auto reason = why_refused(tokens)) return plain_error(*reason);
    statement s;
    const char* begin = tokens.front().text.data();
    const auto& last = tokens.back().text;
    s.source = std::make_shared<const std::string>(begin, last.data() + last.size());
    s.tokens = tokenize(*s.source);
    std::erase_if(s.tokens, [](const token& t) { return t.kind == token_kind::comment; });
    find_tables(s);
    classify(s);
    rewriter(s).run();
    if (s.tokens[0].is("TABLE")) s.sql = "SELECT * FROM " + s.sql.substr(5);
    return s;
}

}  // namespace

std::string storage_type(std::string_view declared) {
    const auto type = upper(declared);
    const auto has = [&](std::string_view word) { return type.find(word) != std::string::npos; };
    if (type.starts_with("VECTOR")) {
        std::string lower(declared);
        std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
            return static_cast<char>(std::tolower(c));
        });
        return lower;
    }
    if (has("INT") && !has("INTERVAL")) return "integer";
    if (has("BOOL") || has("SERIAL")) return "integer";
    if (has("BYTEA") || has("BLOB")) return "blob";
    if (has("REAL") || has("FLOA") || has("DOUB") || has("NUM") || has("DEC")) return "real";
    return "text";
}

std::vector<result<statement>> parse_script(std::string_view script) {
    std::vector<result<statement>> statements;
    for (const auto& tokens : split_statements(script))
        statements.push_back(parse_tokens(tokens));
    return statements;
}

result<statement> parse_single(std::string_view sql) {
    auto statements = parse_script(sql);
    if (statements.empty()) return statement{};
    if (statements.size() > 1)
        return plain_error("cannot insert multiple commands into a prepared statement");
    return std::move(statements.front());
}

}  // namespace hotlane::devengine
