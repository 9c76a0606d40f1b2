// Bytes on their way out of a session. The memory is the thread's: what is empty gives it back, so
// that an idle session holds none and a busy one allocates none. Runs of messages that pass
// unchanged are noted as one view of the caller's buffer and copied once, when the run ends: one
// append for each burst.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hotlane::session {

class outbox {
  public:
    // `part` must stay valid until settle(), which every event handler calls at its end.
    void pass(std::string_view part) {
        if (part.empty()) return;
        if (!run_.empty() && run_.data() + run_.size() == part.data()) {
            run_ = {run_.data(), run_.size() + part.size()};
            return;
        }
        settle();
        run_ = part;
    }

    // For messages of our own making.
    std::string& out() {
        settle();
        borrow();
        return bytes_;
    }

    void settle() {
        if (run_.empty()) return;
        borrow();
        bytes_.append(run_);
        run_ = {};
    }

    [[nodiscard]] std::string_view view() const noexcept {
        return std::string_view(bytes_).substr(read_);
    }
    [[nodiscard]] std::size_t size() const noexcept { return bytes_.size() - read_ + run_.size(); }

    void consume(std::size_t count) noexcept {
        read_ += count < bytes_.size() - read_ ? count : bytes_.size() - read_;
        if (read_ == bytes_.size()) {
            clear_read();
        } else if (read_ >= compact_at && read_ >= bytes_.size() / 2) {
            bytes_.erase(0, read_);
            read_ = 0;
        }
    }

    void clear() noexcept {
        run_ = {};
        clear_read();
    }

  private:
    static constexpr std::size_t compact_at = 64 * 1024;
    static constexpr std::size_t keep_capacity = 512 * 1024;  // a burst must not stay for life
    static constexpr std::size_t worth_keeping = 64;
    static constexpr std::size_t spares_max = 16;

    static std::vector<std::string>& spares() {
        thread_local std::vector<std::string> all;
        return all;
    }
    void borrow() {
        if (bytes_.capacity() >= worth_keeping || spares().empty()) return;
        auto memory = std::move(spares().back());
        spares().pop_back();
        memory.assign(bytes_);
        bytes_ = std::move(memory);
    }
    void clear_read() noexcept {
        read_ = 0;
        bytes_.clear();
        if (bytes_.capacity() < worth_keeping) return;
        const bool keep = bytes_.capacity() <= keep_capacity && spares().size() < spares_max;
        std::string memory;
        memory.swap(bytes_);
        if (keep) spares().push_back(std::move(memory));
    }

    std::string bytes_;
    std::size_t read_{0};
    std::string_view run_;
};

}  // namespace hotlane::session
