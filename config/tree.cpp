#include "config/tree.hpp"

#include <exception>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace hotlane::config {
namespace {

struct too_deep : std::exception {};

// Collects events on a stack of open containers.
class builder : public YAML::EventHandler {
  public:
    builder(const source_file& file, problem_list& out) : file_{file}, out_{out} {}

    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}
    void OnAnchor(const YAML::Mark& mark, const std::string&) override {
        refuse(mark, "anchors (&name) are not supported", "write the value where it is meant");
    }
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        check(mark, "", anchor);
        put(at(mark, node::kind::null));
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
        refuse(mark, "aliases (*name) are not supported", "write the value where it is meant");
        auto n = at(mark, node::kind::null);
        n.refused = true;
        put(std::move(n));
    }
    void OnScalar(const YAML::Mark& mark,
                  const std::string& tag,
                  YAML::anchor_t anchor,
                  const std::string& value) override {
        check(mark, tag, anchor);
        auto n = at(mark, node::kind::scalar);
        n.quoted = tag == "!";
        n.text = value;
        put(std::move(n));
    }
    void OnSequenceStart(const YAML::Mark& mark,
                         const std::string& tag,
                         YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        check(mark, tag, anchor);
        open(at(mark, node::kind::sequence));
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark& mark,
                    const std::string& tag,
                    YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        check(mark, tag, anchor);
        open(at(mark, node::kind::map));
    }
    void OnMapEnd() override { close(); }

    node take() {
        while (!stack_.empty())
            close();
        return std::move(root_);
    }

  private:
    struct frame {
        node value;
        std::vector<node> pending;  // a key that waits for its value
        std::map<std::string, location, std::less<>> seen;
        bool skip{false};  // the pending key was refused
    };

    node at(const YAML::Mark& mark, node::kind type) const {
        node n;
        n.type = type;
        n.file = &file_;
        n.line = mark.is_null() ? 1 : mark.line + 1;
        n.column = mark.is_null() ? 1 : mark.column + 1;
        return n;
    }
    void refuse(const YAML::Mark& mark, std::string message, std::string mend) {
        out_.error(at(mark, node::kind::null).where(), "", std::move(message), std::move(mend));
    }
    void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t) {
        if (tag.empty() || tag == "?" || tag == "!") return;
        refuse(mark, "tags (!type) are not supported", "leave it out");
    }

    void open(node n) {
        if (stack_.size() >= static_cast<std::size_t>(depth_max)) {
            out_.error(n.where(),
                       "",
                       fmt::format("is nested deeper than {} levels", depth_max),
                       "flatten it");
            throw too_deep{};
        }
        frame f;
        f.value = std::move(n);
        stack_.push_back(std::move(f));
    }

    void close() {
        auto done = std::move(stack_.back().value);
        stack_.pop_back();
        put(std::move(done));
    }

    void put(node n) {
        if (stack_.empty()) {
            root_ = std::move(n);
            return;
        }
        auto& top = stack_.back();
        if (top.value.type == node::kind::sequence) {
            top.value.items.push_back(std::move(n));
        } else if (top.pending.empty()) {
            put_key(top, std::move(n));
        } else {
            put_value(top, std::move(n));
        }
    }

    void put_key(frame& top, node key) {
        top.skip = true;
        if (key.type != node::kind::scalar) {
            out_.error(key.where(), "", "a key must be plain text", "");
        } else if (key.text == "<<" && !key.quoted) {
            out_.error(key.where(),
                       "",
                       "merge keys (<<) are not supported",
                       "policies can extend one another");
        } else if (auto [it, fresh] = top.seen.emplace(key.text, key.where()); !fresh) {
            out_.error(key.where(),
                       key.text,
                       fmt::format("duplicate key, first written at {}:{}:{}",
                                   it->second.file,
                                   it->second.line,
                                   it->second.column),
                       "keep one of them");
        } else {
            top.skip = false;
        }
        top.pending.push_back(std::move(key));
    }

    void put_value(frame& top, node value) {
        auto key = std::move(top.pending.back());
        top.pending.clear();
        if (top.skip) return;
        if (value.type == node::kind::null) {  // an empty value has no place of its own
            value.line = key.line;
            value.column = key.column;
        }
        top.value.entries.push_back({std::move(key), std::move(value)});
    }

    const source_file& file_;
    problem_list& out_;
    std::vector<frame> stack_;
    node root_;
};

// Bytes that are no UTF-8 or no text would be replaced silently by the parser. Returns their place.
bool find_bad_byte(const std::string& text, std::size_t& at) {
    for (std::size_t i = 0; i < text.size();) {
        const auto c = static_cast<unsigned char>(text[i]);
        std::size_t more = c < 0x80 ? 0 : c >= 0xC2 && c < 0xE0 ? 1 : (c & 0xF0U) == 0xE0 ? 2 : 3;
        const bool control = (c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F;
        bool bad = control || (c >= 0x80 && c < 0xC2) || c > 0xF4 || i + more >= text.size() + 0;
        for (std::size_t k = 1; !bad && k <= more; ++k) {
            bad = (static_cast<unsigned char>(text[i + k]) & 0xC0U) != 0x80;
        }
        if (bad) {
            at = i;
            return true;
        }
        i += more + 1;
    }
    return false;
}

location locate(const source_file& file, std::size_t offset) {
    location where{file.name, 1, 1};
    for (std::size_t i = 0; i < offset; ++i) {
        ++where.column;
        if (file.text[i] == '\n') {
            ++where.line;
            where.column = 1;
        }
    }
    return where;
}

}  // namespace

std::string_view source_file::line(int number) const {
    std::size_t from = 0;
    for (int i = 1; i < number; ++i) {
        from = text.find('\n', from);
        if (from == std::string::npos) return {};
        ++from;
    }
    auto to = text.find('\n', from);
    auto view = std::string_view{text}.substr(from, to == std::string::npos ? to : to - from);
    if (!view.empty() && view.back() == '\r') view.remove_suffix(1);
    return view;
}

const node* node::find(std::string_view key) const {
    for (const auto& [name, value] : entries) {
        if (name.text == key) return &value;
    }
    return nullptr;
}

std::string_view to_string(node::kind kind) noexcept {
    switch (kind) {
        case node::kind::null:
            return "empty";
        case node::kind::scalar:
            return "a single value";
        case node::kind::sequence:
            return "a list";
        case node::kind::map:
            return "a map";
    }
    return "?";
}

void problem_list::add(problem p) {
    if (p.level == severity::error) ++errors_;
    if (problems_.size() < problems_kept_max) problems_.push_back(std::move(p));
}
void problem_list::error(location at, std::string path, std::string message, std::string mend) {
    add({std::move(at), severity::error, std::move(path), std::move(message), std::move(mend)});
}
void problem_list::warn(location at, std::string path, std::string message, std::string mend) {
    add({std::move(at), severity::warning, std::move(path), std::move(message), std::move(mend)});
}

std::optional<node> parse_tree(const source_file& file, problem_list& out) {
    std::size_t bad = 0;
    if (find_bad_byte(file.text, bad)) {
        out.error(locate(file, bad), "", "is not UTF-8 text", "save the file as UTF-8");
        return std::nullopt;
    }
    builder handler{file, out};
    try {
        std::istringstream in{file.text};
        YAML::Parser parser{in};
        parser.HandleNextDocument(handler);
        auto root = handler.take();
        builder rest{file, out};
        if (parser && parser.HandleNextDocument(rest)) {
            const auto second = rest.take();
            out.error({file.name, second.line, second.column},
                      "",
                      "a second document (---) in one file",
                      "use one file for each, and include");
            return std::nullopt;
        }
        return root;
    } catch (const YAML::Exception& e) {
        location where{file.name, e.mark.is_null() ? 1 : e.mark.line + 1, 1};
        if (!e.mark.is_null()) where.column = e.mark.column + 1;
        const auto line = file.line(where.line);
        const bool tab = line.substr(0, line.find_first_not_of(" \t")).find('\t') != line.npos;
        out.error(
            where, "", "not valid YAML: " + e.msg, tab ? "indent with spaces, not with tabs" : "");
    } catch (const too_deep&) {
    }
    return std::nullopt;
}

}  // namespace hotlane::config
