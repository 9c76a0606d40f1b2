// The configuration's keys are described once (describe.cpp); an archive decides what a description
// does: the reader fills values from YAML, the printer writes them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/model.hpp"
#include "config/scalar.hpp"

namespace hotlane::config {

// What a text may hold. Placeholders are `{database}` of a template.
enum class text_rule {
    any,       // not empty
    name,      // letters, digits, . _ - and placeholders
    pattern,   // a glob
    path,      // absolute
    near_path  // made absolute from the file's folder
};

struct duration_range {
    milliseconds low{0};
    milliseconds high{std::chrono::hours{24 * 366}};
};

class archive {
  public:
    virtual ~archive() = default;

    template <class T>
    void integer(std::string_view key, T& value, std::int64_t low, std::int64_t high) {
        auto wide = static_cast<std::int64_t>(value);
        whole(key, wide, low, high);
        value = static_cast<T>(wide);
    }
    template <class T>
    void size(std::string_view key, T& value, std::int64_t low, std::int64_t high) {
        auto wide = static_cast<std::int64_t>(value);
        bytes(key, wide, low, high);
        value = static_cast<T>(wide);
    }
    // The words stand in the order of the enum's values.
    template <class E>
    void choice(std::string_view key, E& value, const std::vector<std::string>& words) {
        auto index = static_cast<std::size_t>(value);
        word(key, index, words);
        value = static_cast<E>(index);
    }
    // Several of the words, each once.
    template <class E>
    void choices(std::string_view key,
                 std::vector<E>& values,
                 const std::vector<std::string>& known) {
        std::vector<std::size_t> indexes;
        for (const E one : values)
            indexes.push_back(static_cast<std::size_t>(one));
        words(key, indexes, known);
        values.clear();
        for (const auto index : indexes)
            values.push_back(static_cast<E>(index));
    }
    // A value whose text has a form of its own. An empty print is not written.
    template <class T>
    void shaped(std::string_view key,
                T& value,
                parsed<T> (*parse)(std::string_view),
                std::string (*print)(const T&)) {
        form(key, print(value), [&](std::string_view text) -> std::optional<complaint> {
            auto got = parse(text);
            if (!got) return got.error();
            value = *got;
            return std::nullopt;
        });
    }
    template <class F>
    void section(std::string_view key, F&& body) {
        if (enter(key)) {
            body();
            leave();
        }
    }
    template <class T, class F>
    void optional_section(std::string_view key, std::optional<T>& value, F&& body) {
        if (reading() ? !has(key) : !value) return;
        if (!value) value.emplace();
        section(key, [&] { body(*value); });
    }
    template <class T, class F>
    void list(std::string_view key, std::vector<T>& values, F&& body) {
        const auto n = begin_list(key, values.size());
        if (!n) return;
        values.resize(*n);
        for (std::size_t i = 0; i < *n; ++i) {
            if (enter_item(i)) {
                body(values[i]);
                leave();
            }
        }
        leave();
    }
    template <class T, class F>
    void named(std::string_view key, std::map<std::string, T>& values, F&& body) {
        std::vector<std::string> names;
        for (const auto& [name, value] : values)
            names.push_back(name);
        if (!begin_map(key, names)) return;
        for (const auto& name : names) {
            if (enter(name)) {
                body(name, values[name]);
                leave();
            }
        }
        leave();
    }

    virtual void duration(std::string_view key, milliseconds& value, duration_range range = {}) = 0;
    virtual void ratio(std::string_view key, double& value) = 0;
    virtual void number(std::string_view key, double& value, double high) = 0;
    virtual void boolean(std::string_view key, bool& value) = 0;
    virtual void text(std::string_view key, std::string& value, text_rule rule) = 0;
    virtual void address(std::string_view key, endpoint& value, bool any_port) = 0;
    virtual void secret(std::string_view key, secret_ref& value) = 0;
    virtual void texts(std::string_view key, std::vector<std::string>& values, text_rule rule) = 0;
    virtual void pairs(std::string_view key, std::map<std::string, std::string>& values) = 0;
    virtual void overlaid(std::string_view key, overlay_ptr& value) = 0;
    virtual void required(std::string_view key) = 0;                // the open map must have it
    virtual void one_of(const std::vector<std::string>& keys) = 0;  // exactly one of them

    [[nodiscard]] virtual bool reading() const = 0;
    [[nodiscard]] virtual bool has(std::string_view key) const = 0;  // reading: is it written?
    [[nodiscard]] virtual location here() const = 0;                 // reading: the open map

  protected:
    virtual void whole(std::string_view, std::int64_t&, std::int64_t, std::int64_t) = 0;
    virtual void bytes(std::string_view, std::int64_t&, std::int64_t, std::int64_t) = 0;
    virtual void word(std::string_view, std::size_t&, const std::vector<std::string>&) = 0;
    virtual void words(std::string_view,
                       std::vector<std::size_t>&,
                       const std::vector<std::string>&) = 0;
    using take_text = std::function<std::optional<complaint>(std::string_view)>;
    virtual void form(std::string_view key, const std::string& now, const take_text& take) = 0;
    virtual bool enter(std::string_view key) = 0;  // true: leave() must follow
    virtual bool enter_item(std::size_t index) = 0;
    virtual void leave() = 0;
    virtual std::optional<std::size_t> begin_list(std::string_view key, std::size_t size) = 0;
    virtual bool begin_map(std::string_view key, std::vector<std::string>& names) = 0;
};

// describe.cpp. Policies are described apart, since they inherit.
void describe_process(archive& a, model& m);
void describe_tool(archive& a, tool& t);
void describe_server(archive& a, postgres_server& s);
void describe_group(archive& a, group& g);
void describe_policy(archive& a, policy::settings& s);

}  // namespace hotlane::config
