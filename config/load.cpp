#include "config/load.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "config/assemble.hpp"

namespace hotlane::config {
namespace {

std::string sha256(const std::deque<source_file>& files) {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> ctx{EVP_MD_CTX_new(),
                                                                      &EVP_MD_CTX_free};
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int length = 0;
    bool ok = ctx && EVP_DigestInit_ex(ctx.get(), EVP_sha256(), nullptr) == 1;
    for (const auto& f : files) {
        ok = ok && EVP_DigestUpdate(ctx.get(), f.text.data(), f.text.size()) == 1;
    }
    ok = ok && EVP_DigestFinal_ex(ctx.get(), digest, &length) == 1;
    std::string hex;
    for (unsigned int i = 0; ok && i < length; ++i)
        hex += fmt::format("{:02x}", digest[i]);
    return hex;
}

bool names_a_secret(std::string_view key) {
    std::string low{key};
    for (auto& c : low)
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return low.find("pass") != low.npos || low.find("secret") != low.npos ||
           low.find("token") != low.npos;
}

// Lines that may hold a secret written where it does not belong: they are never shown.
using hidden_lines = std::set<std::pair<const source_file*, int>>;

void hide(const node& n, hidden_lines& out) {
    const auto lines = std::count(n.text.begin(), n.text.end(), '\n') + 1;
    for (int i = 0; n.type == node::kind::scalar && i <= lines; ++i)
        out.emplace(n.file, n.line + i);
    if (n.type == node::kind::scalar) out.emplace(n.file, n.line);
    for (const auto& item : n.items)
        hide(item, out);
    for (const auto& [key, value] : n.entries) {
        if (value.type != node::kind::scalar || (key.text != "file" && key.text != "env")) {
            hide(key, out);
            hide(value, out);
        }
    }
}

void find_secrets(const node& n, hidden_lines& out) {
    for (const auto& item : n.items)
        find_secrets(item, out);
    for (const auto& [key, value] : n.entries) {
        if (names_a_secret(key.text)) {
            hide(value, out);
        } else {
            find_secrets(value, out);
        }
    }
}

bool shows_a_secret(std::string_view line) {
    const bool by_reference = line.find("{file:") != line.npos || line.find("{env:") != line.npos ||
                              line.find("{ file:") != line.npos || line.find("{ env:") != line.npos;
    const auto colon = line.find(':');
    const bool is_url = line.find("://") != line.npos && line.find('@') != line.npos;
    return is_url || (names_a_secret(line) && !by_reference && colon != line.npos);
}

std::string render_all(const assembly& work,
                       std::vector<problem> list,
                       const hidden_lines& hidden) {
    std::string out;
    const auto shown = std::min(list.size(), problems_shown_max);
    for (std::size_t i = 0; i < shown; ++i) {
        std::string_view line;
        for (const auto& f : work.files) {
            if (f.name != list[i].where.file || hidden.contains({&f, list[i].where.line})) continue;
            line = f.line(list[i].where.line);
        }
        constexpr std::size_t line_max = 200;  // a longer one helps nobody
        if (line.size() > line_max || shows_a_secret(line)) line = {};
        out += render(list[i], line);
    }
    if (shown < list.size()) out += fmt::format("... and {} more\n", list.size() - shown);
    return out;
}

// By place; the files in the order in which they were read.
std::vector<problem> sorted(const assembly& work) {
    auto list = work.problems.all();
    const auto rank = [&](const std::string& name) {
        const auto at = std::find_if(
            work.files.begin(), work.files.end(), [&](const auto& f) { return f.name == name; });
        return at - work.files.begin();
    };
    std::stable_sort(list.begin(), list.end(), [&](const problem& a, const problem& b) {
        return std::tuple{rank(a.where.file), a.where.line, a.where.column} <
               std::tuple{rank(b.where.file), b.where.line, b.where.column};
    });
    return list;
}

tl::expected<loaded, refused> load(std::string text, const std::string& name, file_access* access) {
    assembly work;
    work.files.push_back({name, std::move(text)});
    hidden_lines hidden;
    if (work.files[0].text.size() > file_bytes_max) {
        work.files[0].text.clear();
        work.problems.error({name, 1, 1}, "", "is larger than 1MiB");
    } else {
        auto root = parse_tree(work.files[0], work.problems);
        if (root && root->type == node::kind::map) {
            merge_includes(work, *root, access);
            find_secrets(*root, hidden);
            read_model(work, *root);
            check_model(work, access);
        } else if (!work.problems.has_errors()) {
            work.problems.error({name, 1, 1}, "", "the file must be a map of keys", "version: 1");
        }
    }
    auto list = sorted(work);
    auto rendered = render_all(work, list, hidden);
    if (work.problems.has_errors()) {
        return tl::unexpected<refused>{refused{std::move(list), std::move(rendered)}};
    }
    work.value.hash = sha256(work.files);
    return loaded{
        std::move(work.value), std::move(list), std::move(rendered), std::move(work.origins)};
}

}  // namespace

tl::expected<loaded, refused> load_file(const std::string& path) {
    real_files files;
    auto text = files.read(path);
    if (!text) {
        problem p{{path, 1, 1}, severity::error, "", text.error(), ""};
        auto rendered = render(p, "");
        return tl::unexpected<refused>{refused{{std::move(p)}, std::move(rendered)}};
    }
    return load(std::move(*text), path, &files);
}

tl::expected<loaded, refused> load_text(const std::string& text, const std::string& name) {
    return load(text, name, nullptr);
}

}  // namespace hotlane::config
