#include "config/print.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/archive.hpp"
#include "config/assemble.hpp"
#include "config/overlay.hpp"
#include "config/scalar.hpp"

namespace hotlane::config {
namespace {

// Double quotes where plain YAML could read something else.
std::string yaml_text(const std::string& s) {
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
    const bool null = s == "null" || s == "Null" || s == "NULL";
    if (!s.empty() && !null && s[0] != '-' && s.find_first_not_of(plain) == s.npos) return s;
    std::string out = "\"";
    for (const char c : s) {
        const auto u = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (u < 0x20 || u == 0x7F) {
            out += fmt::format("\\x{:02X}", u);
        } else {
            out += c;
        }
    }
    return out + '"';
}

class printer : public archive {
  public:
    explicit printer(const origin_map& origins) : origins_{origins} {}

    [[nodiscard]] std::string take() { return std::move(out_); }

    void duration(std::string_view key, milliseconds& v, duration_range) override {
        line(key, print_duration(v));
    }
    void ratio(std::string_view key, double& v) override { line(key, print_number(v)); }
    void number(std::string_view key, double& v, double) override { line(key, print_number(v)); }
    void boolean(std::string_view key, bool& v) override { line(key, v ? "true" : "false"); }
    void text(std::string_view key, std::string& v, text_rule) override {
        if (!v.empty()) line(key, yaml_text(v));
    }
    void address(std::string_view key, endpoint& v, bool) override {
        line(key, yaml_text(print_endpoint(v)));
    }
    void secret(std::string_view key, secret_ref& v) override {
        switch (v.source) {
            case secret_ref::kind::none:
                return;
            case secret_ref::kind::file:
                line(key, "{file: " + yaml_text(v.name) + "}");
                return;
            case secret_ref::kind::env:
                line(key, "{env: " + yaml_text(v.name) + "}");
                return;
        }
    }
    void texts(std::string_view key, std::vector<std::string>& v, text_rule) override {
        if (v.empty()) return;
        std::vector<std::string> quoted_ones;
        for (const auto& one : v)
            quoted_ones.push_back(yaml_text(one));
        line(key, fmt::format("[{}]", fmt::join(quoted_ones, ", ")));
    }
    void pairs(std::string_view key, std::map<std::string, std::string>& v) override {
        if (v.empty()) return;
        std::vector<std::string> out;
        for (const auto& [name, value] : v)
            out.push_back(yaml_text(name) + ": " + yaml_text(value));
        line(key, fmt::format("{{{}}}", fmt::join(out, ", ")));
    }
    // What a group or a template sets is shown as it is written; a tool's is shown resolved.
    void overlaid(std::string_view key, overlay_ptr& on) override {
        if (!on || resolved_) return;
        policy::settings s;
        problem_list problems;
        origin_map origins;
        apply(*on, s, problems, origins);
        only_ = fmt::format("{}.{}", path_, key).substr(1);
        section(key, [&] { describe_policy(*this, s); });
        only_.clear();
        heads_.clear();
    }
    // From now on overlays are left out: what they come to is printed instead.
    void resolve(bool is_on) { resolved_ = is_on; }
    void required(std::string_view) override {}
    void one_of(const std::vector<std::string>&) override {}
    [[nodiscard]] bool reading() const override { return false; }
    [[nodiscard]] bool has(std::string_view) const override { return false; }
    [[nodiscard]] location here() const override { return {}; }

  protected:
    void whole(std::string_view key, std::int64_t& v, std::int64_t, std::int64_t) override {
        line(key, std::to_string(v));
    }
    void bytes(std::string_view key, std::int64_t& v, std::int64_t, std::int64_t) override {
        line(key, print_size(v));
    }
    void words(std::string_view key,
               std::vector<std::size_t>& indexes,
               const std::vector<std::string>& known) override {
        std::vector<std::string> out;
        for (const auto index : indexes)
            out.push_back(known.at(index));
        line(key, fmt::format("[{}]", fmt::join(out, ", ")));
    }
    void form(std::string_view key, const std::string& now, const take_text&) override {
        if (!now.empty()) line(key, yaml_text(now));
    }
    void word(std::string_view key,
              std::size_t& index,
              const std::vector<std::string>& words) override {
        line(key, words.at(index));
    }
    bool enter(std::string_view key) override {
        open(yaml_text(std::string{key}) + ":", fmt::format("{}.{}", path_, key));
        return true;
    }
    bool enter_item(std::size_t index) override {
        open("-", fmt::format("{}[{}]", path_, index));
        return true;
    }
    void leave() override {
        if (!heads_.empty()) heads_.pop_back();
        path_ = std::move(above_.back());
        above_.pop_back();
    }
    std::optional<std::size_t> begin_list(std::string_view key, std::size_t size) override {
        if (size == 0) {
            line(key, "[]");
            return {};
        }
        enter(key);
        return size;
    }
    bool begin_map(std::string_view key, std::vector<std::string>& names) override {
        if (names.empty()) {
            line(key, "{}");
            return false;
        }
        return enter(key);
    }

  private:
    void open(const std::string& head, std::string path) {
        heads_.push_back(std::string(above_.size() * 2, ' ') + head + '\n');
        if (only_.empty()) write_heads();
        above_.push_back(std::move(path_));
        path_ = std::move(path);
    }
    void line(std::string_view key, std::string_view value) {
        const auto path = fmt::format("{}.{}", path_, key);
        const auto at = origins_.find(std::string_view{path}.substr(1));
        if (!only_.empty() && at == origins_.end()) return;
        write_heads();
        const auto origin = at == origins_.end()
                                ? std::string{"default"}
                                : fmt::format("{}:{}", at->second.file, at->second.line);
        const auto text = fmt::format("{:{}}{}: {}", "", above_.size() * 2, key, value);
        out_ += fmt::format("{:<48} # {}\n", text, origin);
    }

    void write_heads() {
        for (const auto& head : heads_)
            out_ += head;
        heads_.clear();
    }

    const origin_map& origins_;
    std::string only_;                // not empty: only what is written is printed
    std::vector<std::string> heads_;  // of open sections in which nothing was printed yet
    bool resolved_{false};
    std::string out_;
    std::string path_;  // begins with a dot
    std::vector<std::string> above_;
};

}  // namespace

std::string print_effective(const loaded& config) {
    printer p{config.origins};
    auto m = config.value;  // descriptions take what they could also fill
    describe_process(p, m);
    p.named("policies", m.policies, [&](const std::string&, policy::settings& s) {
        describe_policy(p, s);
    });
    if (!m.groups.empty()) p.list("groups", m.groups, [&](group& g) { describe_group(p, g); });
    p.list("tools", m.tools, [&](tool& t) {
        const bool is_resolved = !t.is_template() && has_overlay(m, t);
        p.resolve(is_resolved);
        describe_tool(p, t);
        if (!is_resolved) return;
        auto s = settings_of(m, t);
        p.section("set", [&] { describe_policy(p, s); });
    });
    return p.take();
}

}  // namespace hotlane::config
