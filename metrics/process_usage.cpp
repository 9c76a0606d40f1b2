#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>
#include <fstream>
#include <sstream>
#include <string>

#include "metrics/snapshot.hpp"

namespace hotlane::metrics {
namespace {

double boot_seconds() {
    std::ifstream in{"/proc/stat"};
    for (std::string word; in >> word;) {
        double value{};
        if (word == "btime" && in >> value) return value;
    }
    return 0;
}

double count_open_fds() {
    auto* folder = opendir("/proc/self/fd");
    if (folder == nullptr) return 0;
    double n = -1;  // the folder itself is open
    while (const auto* entry = readdir(folder)) {
        if (entry->d_name[0] != '.') ++n;
    }
    closedir(folder);
    return n;
}

}  // namespace

process_usage read_process_usage() {
    process_usage out;
    std::ifstream in{"/proc/self/stat"};
    std::string stat;
    std::getline(in, stat);
    // The second field is the program's name and may hold anything; count from the last ')'.
    const auto close = stat.rfind(')');
    if (close != std::string::npos) {
        std::istringstream fields{stat.substr(close + 1)};
        std::string field;
        const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
        const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
        for (int number = 3; fields >> field; ++number) {  // numbers of proc(5)
            if (number == 14 || number == 15) out.cpu_seconds += std::stod(field) / ticks;
            if (number == 22) out.start_seconds = boot_seconds() + std::stod(field) / ticks;
            if (number == 23) out.virtual_bytes = std::stod(field);
            if (number == 24) out.resident_bytes = std::stod(field) * page;
        }
    }
    out.open_fds = count_open_fds();
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) out.max_fds = static_cast<double>(limit.rlim_cur);
    return out;
}

}  // namespace hotlane::metrics
