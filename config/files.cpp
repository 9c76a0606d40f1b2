#include "config/files.hpp"

#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "config/load.hpp"
#include "config/tree.hpp"

namespace hotlane::config {
namespace {

struct closer {
    void operator()(std::FILE* f) const noexcept { std::fclose(f); }
};

tl::unexpected<std::string> why() {
    return tl::unexpected<std::string>{std::strerror(errno)};
}

// Reads at most `limit` bytes of a regular file (or a pipe, as process substitution makes them).
tl::expected<std::string, std::string> slurp(const std::string& path, std::size_t limit) {
    const std::unique_ptr<std::FILE, closer> file{std::fopen(path.c_str(), "re")};
    if (!file) return why();
    struct stat st {};
    if (fstat(fileno(file.get()), &st) != 0) return why();
    if (S_ISDIR(st.st_mode)) return tl::unexpected<std::string>{"is a directory"};
    std::string text(limit + 1, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file.get()));
    if (std::ferror(file.get()) != 0) return why();
    if (text.size() > limit) {
        return tl::unexpected<std::string>{fmt::format("is larger than {} bytes", limit)};
    }
    return text;
}

constexpr std::size_t secret_bytes_max = 4096;

}  // namespace

tl::expected<std::string, std::string> read_whole(const std::string& path, std::size_t bytes_max) {
    const std::unique_ptr<std::FILE, closer> file{std::fopen(path.c_str(), "re")};
    if (!file) return why();
    std::string text;
    std::array<char, 64 * 1024> piece{};
    while (const auto n = std::fread(piece.data(), 1, piece.size(), file.get())) {
        text.append(piece.data(), n);
        if (text.size() > bytes_max)
            return tl::unexpected<std::string>{fmt::format("is larger than {} bytes", bytes_max)};
    }
    if (std::ferror(file.get()) != 0) return why();
    return text;
}

tl::expected<std::string, std::string> real_files::read(const std::string& path) {
    return slurp(path, file_bytes_max);
}

std::vector<std::string> real_files::expand(const std::string& pattern) {
    if (pattern.find_first_of("*?[") == std::string::npos) return {pattern};
    glob_t found{};
    std::vector<std::string> out;
    if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
        out.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    }
    globfree(&found);
    return out;
}

bool real_files::readable(const std::string& path) {
    return access(path.c_str(), R_OK) == 0;
}

tl::expected<std::string, std::string> read_secret(const secret_ref& ref) {
    std::string text;
    std::string what;
    switch (ref.source) {
        case secret_ref::kind::none:
            return std::string{};
        case secret_ref::kind::file: {
            auto got = slurp(ref.name, secret_bytes_max);
            if (!got)
                return tl::unexpected<std::string>{"secret file " + ref.name + ": " + got.error()};
            text = std::move(*got);
            what = "secret file " + ref.name;
            break;
        }
        case secret_ref::kind::env: {
            const char* value = std::getenv(ref.name.c_str());
            what = "environment variable " + ref.name;
            if (value == nullptr) return tl::unexpected<std::string>{what + " is not set"};
            text = value;
            break;
        }
    }
    // Editors and `echo` leave one newline, which no one means.
    if (!text.empty() && text.back() == '\n') text.pop_back();
    if (!text.empty() && text.back() == '\r') text.pop_back();
    if (text.empty()) return tl::unexpected<std::string>{what + " is empty"};
    if (text.size() > secret_bytes_max) {
        return tl::unexpected<std::string>{
            fmt::format("{} is longer than {}", what, secret_bytes_max)};
    }
    if (text.find('\0') != std::string::npos) {
        return tl::unexpected<std::string>{what + " holds a zero byte"};
    }
    return text;
}

}  // namespace hotlane::config
