#include "config/reader.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/scalar.hpp"

namespace hotlane::config {

reader::reader(const node& root, std::string path, problem_list& out, origin_map& origins)
    : out_{out}, origins_{origins} {
    stack_.push_back({&root, std::move(path), {}, true});
}

std::string reader::path_of(std::string_view key) const {
    const auto& base = stack_.back().path;
    return base.empty() ? std::string{key} : fmt::format("{}.{}", base, key);
}

location reader::here() const {
    return stack_.back().at->where();
}

bool reader::has(std::string_view key) const {
    return stack_.back().at->find(key) != nullptr;
}

void reader::wrong(const node& n, std::string_view key, std::string message, std::string mend) {
    out_.error(n.where(), path_of(key), std::move(message), std::move(mend));
}

const node* reader::find(std::string_view key) {
    stack_.back().known.emplace(key);
    const auto* n = stack_.back().at->find(key);
    if (n != nullptr) origins_[path_of(key)] = n->where();
    return n;
}

bool reader::expect(const node& n, node::kind type, const std::string& path) {
    if (n.type == type) return true;
    if (n.refused) return false;
    out_.error(n.where(),
               path,
               fmt::format("is {}, but {} is meant", to_string(n.type), to_string(type)),
               n.type == node::kind::null ? "leave the key out for its default" : "");
    return false;
}

// `wanted` empty: quotes do no harm, since the unit says what is meant.
const node* reader::scalar(std::string_view key, std::string_view wanted) {
    const auto* n = find(key);
    if (n == nullptr || !expect(*n, node::kind::scalar, path_of(key))) return nullptr;
    if (n->quoted && !wanted.empty()) {
        wrong(*n, key, fmt::format("is text, but {} is meant", wanted), "write it without quotes");
        return nullptr;
    }
    return n;
}

void reader::required(std::string_view key) {
    const auto& top = stack_.back();
    if (top.at->find(key) != nullptr) return;
    out_.error(here(), path_of(key), "is missing", key == "version" ? "write version: 1" : "");
}

void reader::one_of(const std::vector<std::string>& keys) {
    const auto n = std::count_if(keys.begin(), keys.end(), [&](const auto& k) { return has(k); });
    if (n == 1) return;
    out_.error(here(),
               stack_.back().path,
               n == 0 ? "says nothing" : "says too much",
               fmt::format("write one of: {}", fmt::join(keys, ", ")));
    for (const auto& k : keys)
        stack_.back().known.insert(k);
}

template <class T, class F, class P>
void reader::bounded(
    std::string_view key, std::string_view wanted, T& value, range<T> allowed, F parse, P print) {
    const auto [low, high] = allowed;
    const auto* n = scalar(key, wanted);
    if (n == nullptr) return;
    const auto got = parse(n->text);
    if (!got) {
        wrong(*n, key, got.error().message, got.error().mend);
    } else if (*got < low || *got > high) {
        wrong(*n,
              key,
              fmt::format("{} is out of range", quoted(n->text)),
              low == high ? fmt::format("only {} is known", print(low))
                          : fmt::format("{} to {}", print(low), print(high)));
    } else {
        value = *got;
    }
}

void reader::whole(std::string_view key, std::int64_t& v, std::int64_t low, std::int64_t high) {
    bounded(key, "a number", v, {low, high}, parse_integer, [](auto n) {
        return fmt::format("{}", n);
    });
}
void reader::bytes(std::string_view key, std::int64_t& v, std::int64_t low, std::int64_t high) {
    bounded(key, "", v, {low, high}, parse_size, print_size);
}
void reader::duration(std::string_view key, milliseconds& value, duration_range allowed) {
    bounded(key, "", value, {allowed.low, allowed.high}, parse_duration, print_duration);
}
void reader::ratio(std::string_view key, double& value) {
    bounded(key, "a number", value, {0.0, 1.0}, parse_ratio, print_number);
}
void reader::number(std::string_view key, double& value, double high) {
    bounded(key, "a number", value, {0.0, high}, parse_number, print_number);
}
void reader::boolean(std::string_view key, bool& value) {
    bounded(key, "true or false", value, {false, true}, parse_boolean, [](bool b) {
        return b ? "true" : "false";
    });
}

void reader::word(std::string_view key, std::size_t& index, const std::vector<std::string>& words) {
    const auto* n = find(key);
    if (n == nullptr || !expect(*n, node::kind::scalar, path_of(key))) return;
    const auto it = std::find(words.begin(), words.end(), n->text);
    if (it != words.end()) {
        index = static_cast<std::size_t>(it - words.begin());
        return;
    }
    const auto near = nearest(n->text, words);
    wrong(*n,
          key,
          quoted(n->text) + " is not known here",
          near.empty() ? fmt::format("one of: {}", fmt::join(words, ", "))
                       : fmt::format("did you mean {}?", near));
}

bool reader::text_ok(const node& n, std::string_view key, text_rule rule) {
    const auto& s = n.text;
    constexpr std::size_t name_max = 63;  // a PostgreSQL identifier
    constexpr std::size_t text_max = 4096;
    constexpr std::string_view name_chars =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    auto rest = s;
    constexpr std::string_view placeholder = "{database}";
    for (auto at = rest.find(placeholder); at != rest.npos; at = rest.find(placeholder)) {
        rest.erase(at, placeholder.size());
    }
    if (s.empty()) {
        if (rule == text_rule::pattern) return true;
        wrong(n, key, "is empty");
    } else if (s.size() > text_max || s.find_first_of("\r\n") != s.npos) {
        wrong(n, key, "is too long or has several lines");
    } else if (rule != text_rule::path && rest.find_first_of("{}") != rest.npos) {
        wrong(n, key, quoted(s) + " has an unknown placeholder", "only {database} is known");
    } else if (rule == text_rule::name &&
               (rest.size() > name_max || rest.find_first_not_of(name_chars) != rest.npos)) {
        wrong(n, key, quoted(s) + " is not a name", "up to 63 letters, digits, dots, _ and -");
    } else if (rule == text_rule::path && s[0] != '/') {
        wrong(n, key, quoted(s) + " is not an absolute path", "begin it with /");
    } else {
        return true;
    }
    return false;
}

namespace {

// sun_path of Linux, its terminating zero included.
constexpr std::size_t socket_path_max = 107;

std::string folder_of(const std::string& file) {
    const auto slash = file.rfind('/');
    return slash == std::string::npos ? "" : file.substr(0, slash + 1);
}

bool is_environment_name(std::string_view s) {
    const auto letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    return !s.empty() && letter(s[0]) && std::all_of(s.begin(), s.end(), [&](char c) {
        return letter(c) || (c >= '0' && c <= '9');
    });
}

}  // namespace

void reader::text(std::string_view key, std::string& value, text_rule rule) {
    const auto* n = find(key);
    if (n == nullptr || !expect(*n, node::kind::scalar, path_of(key))) return;
    if (!text_ok(*n, key, rule)) return;
    if ((key == "unix" || key == "socket") && n->text.size() > socket_path_max) {
        wrong(*n, key, fmt::format("is longer than a socket path can be ({})", socket_path_max));
        return;
    }
    const bool relative = rule == text_rule::near_path && n->text[0] != '/';
    value = relative ? folder_of(n->file->name) + n->text : n->text;
}

void reader::address(std::string_view key, endpoint& value, bool any_port) {
    const auto* n = find(key);
    if (n == nullptr || !expect(*n, node::kind::scalar, path_of(key))) return;
    if (!text_ok(*n, key, text_rule::any)) return;
    const auto got = parse_endpoint(n->text);
    if (!got) {
        wrong(*n, key, got.error().message, got.error().mend);
    } else if (got->port == 0 && !any_port) {
        wrong(*n, key, "port 0 is no port to connect to", "a number from 1 to 65535");
    } else if (got->is_unix() && any_port) {
        wrong(*n, key, quoted(n->text) + " is not a TCP address", "for example 127.0.0.1:6432");
    } else {
        value = *got;
    }
}

void reader::secret(std::string_view key, secret_ref& value) {
    static constexpr std::string_view mend = "{file: /path/of/the/file} or {env: NAME}";
    const auto* n = find(key);
    if (n == nullptr) return;
    if (n->type == node::kind::scalar) {
        wrong(*n, key, "is written inline; a secret is named, never written", std::string{mend});
        return;
    }
    if (!enter(key)) return;
    one_of({"file", "env"});
    const auto* file = find("file");
    const auto* env = find("env");
    const auto* source = file != nullptr ? file : env;
    const std::string_view kind = file != nullptr ? "file" : "env";
    if (source != nullptr && expect(*source, node::kind::scalar, path_of(kind))) {
        if (source->text.empty()) {
            wrong(*source, kind, "is empty", std::string{mend});
        } else if (env == source && !is_environment_name(env->text)) {
            wrong(*env, kind, "is not the name of a variable", "for example {env: APP_PASSWORD}");
        } else {
            value.source = env == source ? secret_ref::kind::env : secret_ref::kind::file;
            const bool relative = file == source && file->text[0] != '/';
            value.name = relative ? folder_of(file->file->name) + file->text : source->text;
        }
    }
    leave();
}

bool reader::enter(std::string_view key) {
    const auto* n = find(key);
    if (n == nullptr || !expect(*n, node::kind::map, path_of(key))) return false;
    stack_.push_back({n, path_of(key), {}, true});
    return true;
}

bool reader::enter_item(std::size_t index) {
    const auto& top = stack_.back();
    const auto path = fmt::format("{}[{}]", top.path, index);
    const auto& n = top.at->items[index];
    if (!expect(n, node::kind::map, path)) return false;
    origins_[path] = n.where();
    stack_.push_back({&n, path, {}, true});
    return true;
}

std::optional<std::size_t> reader::begin_list(std::string_view key, std::size_t) {
    const auto* n = find(key);
    if (n == nullptr || !expect(*n, node::kind::sequence, path_of(key))) return {};
    stack_.push_back({n, path_of(key), {}, false});
    return n->items.size();
}

bool reader::begin_map(std::string_view key, std::vector<std::string>& names) {
    const auto* n = find(key);
    if (n == nullptr || !expect(*n, node::kind::map, path_of(key))) return false;
    stack_.push_back({n, path_of(key), {}, false});
    names.clear();
    for (const auto& [name, value] : n->entries) {
        if (text_ok(name, name.text, text_rule::name)) names.push_back(name.text);
    }
    return true;
}

void reader::leave() {
    finish();
    stack_.pop_back();
}

void reader::finish(const std::vector<std::string>& also) {
    auto& top = stack_.back();
    if (!top.fixed_keys) return;
    top.known.insert(also.begin(), also.end());
    const std::vector<std::string> known(top.known.begin(), top.known.end());
    for (const auto& [key, value] : top.at->entries) {
        if (top.known.contains(key.text)) continue;
        const auto near = nearest(key.text, known);
        wrong(key,
              key.text,
              "unknown key",
              near.empty() ? fmt::format("known here: {}", fmt::join(known, ", "))
                           : fmt::format("did you mean {}?", near));
    }
}

}  // namespace hotlane::config
