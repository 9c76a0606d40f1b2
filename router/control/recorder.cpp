// The bounded file that `hotlane replay` reads.
#include <cstdio>

#include "policy/recording.hpp"
#include "router/control/parts.hpp"

namespace hotlane::control {

namespace {

struct closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

class file_recorder final : public recorder {
  public:
    explicit file_recorder(config::recording wanted)
        : path_{std::move(wanted.file)}, piece_max_{wanted.bytes / 2} {
        open("a");
    }

    void add(const std::string& lines) override {
        const std::lock_guard lock(mutex_);
        if (size_ > 0 && size_ + lines.size() > piece_max_) {
            file_.reset();
            std::rename(path_.c_str(), (path_ + ".1").c_str());
            open("w");
        }
        // Whole samples only: a reader must not see half of one in the middle of the file.
        const bool is_written =
            file_ != nullptr &&
            std::fwrite(lines.data(), 1, lines.size(), file_.get()) == lines.size() &&
            std::fflush(file_.get()) == 0;
        if (!is_written) {
            ++errors_;
            return;
        }
        size_ += lines.size();
        bytes_ += lines.size();
    }

    [[nodiscard]] std::uint64_t bytes() const override {
        const std::lock_guard lock(mutex_);
        return bytes_;
    }
    [[nodiscard]] std::uint64_t errors() const override {
        const std::lock_guard lock(mutex_);
        return errors_;
    }

  private:
    void open(const char* mode) {
        file_.reset(std::fopen(path_.c_str(), mode));
        size_ = 0;
        if (!file_) return;
        std::fseek(file_.get(), 0, SEEK_END);
        const auto at = std::ftell(file_.get());
        size_ = at > 0 ? static_cast<std::uint64_t>(at) : 0;
        if (size_ > 0) return;
        const auto head = std::string(policy::recording_head) + "\n";
        if (std::fwrite(head.data(), 1, head.size(), file_.get()) == head.size())
            size_ = head.size();
    }

    std::string path_;
    std::uint64_t piece_max_;
    mutable std::mutex mutex_;
    std::unique_ptr<std::FILE, closer> file_;
    std::uint64_t size_{0};
    std::uint64_t bytes_{0};
    std::uint64_t errors_{0};
};

}  // namespace

std::unique_ptr<recorder> open_recorder(const config::recording& wanted) {
    if (wanted.file.empty()) return nullptr;
    return std::make_unique<file_recorder>(wanted);
}

}  // namespace hotlane::control
