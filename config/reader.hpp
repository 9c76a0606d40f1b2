// The archive that fills values from a tree, with every problem noted and every origin remembered.
#pragma once

#include <map>
#include <set>

#include "config/archive.hpp"
#include "config/load.hpp"
#include "config/tree.hpp"

namespace hotlane::config {

class reader : public archive {
  public:
    reader(const node& root, std::string path, problem_list& out, origin_map& origins);

    // The open map's keys that nobody asked for are problems; `also` are known besides.
    void finish(const std::vector<std::string>& also = {});

    // Names a value's place in the text of an error.
    [[nodiscard]] std::string path_of(std::string_view key) const;

    void duration(std::string_view key, milliseconds& value, duration_range range) override;
    void ratio(std::string_view key, double& value) override;
    void number(std::string_view key, double& value, double high) override;
    void boolean(std::string_view key, bool& value) override;
    void text(std::string_view key, std::string& value, text_rule rule) override;
    void address(std::string_view key, endpoint& value, bool any_port) override;
    void secret(std::string_view key, secret_ref& value) override;
    void texts(std::string_view key, std::vector<std::string>& values, text_rule rule) override;
    void pairs(std::string_view key, std::map<std::string, std::string>& values) override;
    void overlaid(std::string_view key, overlay_ptr& value) override;
    void required(std::string_view key) override;
    void one_of(const std::vector<std::string>& keys) override;
    [[nodiscard]] bool reading() const override { return true; }
    [[nodiscard]] bool has(std::string_view key) const override;
    [[nodiscard]] location here() const override;

  protected:
    void whole(std::string_view, std::int64_t&, std::int64_t, std::int64_t) override;
    void bytes(std::string_view, std::int64_t&, std::int64_t, std::int64_t) override;
    void word(std::string_view, std::size_t&, const std::vector<std::string>&) override;
    void words(std::string_view,
               std::vector<std::size_t>&,
               const std::vector<std::string>&) override;
    void form(std::string_view key, const std::string& now, const take_text& take) override;
    bool enter(std::string_view key) override;
    bool enter_item(std::size_t index) override;
    void leave() override;
    std::optional<std::size_t> begin_list(std::string_view key, std::size_t size) override;
    bool begin_map(std::string_view key, std::vector<std::string>& names) override;

  private:
    struct frame {
        const node* at;
        std::string path;
        std::set<std::string, std::less<>> known;
        bool fixed_keys{true};  // false: keys are names, items of a list
    };
    const node* find(std::string_view key);
    const node* scalar(std::string_view key, std::string_view wanted);
    bool expect(const node& n, node::kind type, const std::string& path);
    void wrong(const node& n, std::string_view key, std::string message, std::string mend = {});
    bool text_ok(const node& n, std::string_view key, text_rule rule);
    template <class T>
    struct range {
        T low;
        T high;
    };
    template <class T, class F, class P>
    void bounded(std::string_view key,
                 std::string_view wanted,
                 T& value,
                 range<T> allowed,
                 F parse,
                 P print);

    problem_list& out_;
    origin_map& origins_;
    std::vector<frame> stack_;
};

}  // namespace hotlane::config
