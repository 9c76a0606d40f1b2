#include "router/move/step.hpp"

#include <unistd.h>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

namespace hotlane::move {
namespace {

class process_stepper final : public stepper {
  public:
    process_stepper() {
        if (const char* at = std::getenv("HOTLANE_CRASH_AT")) point_ = read_crash_point(at);
        if (const char* path = std::getenv("HOTLANE_STEP_LOG")) log_path_ = path;
    }

    void before(std::string_view what) override {
        const std::uint64_t number = ++count_;
        if (!log_path_.empty()) note(number, what);
        if (point_.at == number && !point_.after_send) die();
    }

    void sent(std::string_view) override {
        if (point_.at == count_.load() && point_.after_send) die();
    }

  private:
    [[noreturn]] static void die() {
        ::kill(::getpid(), SIGKILL);
        for (;;)
            ::pause();  // the signal is on its way
    }

    void note(std::uint64_t number, std::string_view what) {
        const std::lock_guard lock(mutex_);
        if (std::FILE* file = std::fopen(log_path_.c_str(), "a")) {
            std::string line(what.substr(0, 160));
            for (char& c : line)
                if (c == '\n') c = ' ';
            std::fprintf(file, "%llu %s\n", static_cast<unsigned long long>(number), line.c_str());
            std::fclose(file);
        }
    }

    std::atomic<std::uint64_t> count_{0};
    crash_point point_;
    std::string log_path_;
    std::mutex mutex_;
};

}  // namespace

crash_point read_crash_point(std::string_view text) noexcept {
    crash_point out;
    if (!text.empty() && text.back() == 'r') {
        out.after_send = true;
        text.remove_suffix(1);
    }
    const auto read = std::from_chars(text.data(), text.data() + text.size(), out.at);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return {};
    return out;
}

stepper& process_steps() {
    static process_stepper steps;
    return steps;
}

}  // namespace hotlane::move
