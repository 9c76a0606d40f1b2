#include "router/app/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include <fmt/format.h>

namespace hotlane::app {

using nlohmann::json;

std::string printable(const std::string& text) {
    std::string out = text;
    for (char& c : out) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) c = '?';
    }
    return out;
}

std::string table(const std::vector<std::string>& header,
                  const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const auto& h : header)
        widths.push_back(h.size());
    for (const auto& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], row[i].size());
    }
    std::string out;
    const auto add = [&](const std::vector<std::string>& cells) {
        std::string line;
        for (std::size_t i = 0; i < cells.size(); ++i)
            line += fmt::format("{:<{}}  ", cells[i], widths[i]);
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + '\n';
    };
    add(header);
    for (const auto& row : rows)
        add(row);
    return out;
}

json at(const json& object, const char* key) {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(key);
    return found == object.end() ? json(nullptr) : *found;
}

std::string cell(const json& value, int digits) {
    if (value.is_null()) return "-";
    if (value.is_string()) {
        auto text = printable(value.get<std::string>());
        std::replace(text.begin(), text.end(), '\n', ' ');
        return text.empty() ? "-" : text;
    }
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    if (value.is_number_float()) return fmt::format("{:.{}f}", value.get<double>(), digits);
    return value.dump();
}

std::string moment(const json& seconds) {
    if (!seconds.is_number()) return "-";
    const auto when = static_cast<std::time_t>(seconds.get<double>());
    std::tm parts{};
    ::gmtime_r(&when, &parts);
    char text[32];
    std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%SZ", &parts);
    return text;
}

void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

void talk(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    if (text.empty() || text.back() != '\n') std::fputc('\n', stderr);
}

bool is_terminal(int fd) {
    return ::isatty(fd) == 1;
}

}  // namespace hotlane::app
