// What the control plane is made of and what it acts on. The functions that touch the world are
// passed in, so that tests can put fakes in their place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "config/model.hpp"
#include "policy/shadow.hpp"
#include "router/move/move.hpp"
#include "router/placement/route.hpp"
#include "router/placement/store.hpp"

namespace hotlane::control {

enum class severity { debug, info, warning, error };
using event_log =
    std::function<void(severity, std::string_view event, const nlohmann::json& fields)>;

// The configuration in force; a reload swaps it, readers keep what they took.
class live_model {
  public:
    explicit live_model(config::model first)
        : value_(std::make_shared<const config::model>(std::move(first))) {}
    [[nodiscard]] std::shared_ptr<const config::model> get() const {
        const std::lock_guard lock(mutex_);
        return value_;
    }
    void set(config::model next) {
        auto made = std::make_shared<const config::model>(std::move(next));
        const std::lock_guard lock(mutex_);
        value_ = std::move(made);
    }

  private:
    mutable std::mutex mutex_;
    std::shared_ptr<const config::model> value_;
};

struct world {
    std::function<move::report(const move::request&, move::surroundings&)> run;
    std::function<bool(placement::tool_entry&, move::surroundings&)> recover;
    std::function<move::cleaned(const placement::move_record&, move::surroundings&)> clean;
    // Where the homes say that a tool lives; changes nothing. Needed in a fleet only.
    std::function<move::sight(placement::tool_entry&, move::surroundings&)> see{};
    // Sessions of a tool that wait for clients look at the route again (data plane; may be empty).
    std::function<void(const std::string& tool)> poke{};
    // How quick the tool's PostgreSQL home is; nothing: it cannot be said. May be empty.
    std::function<std::optional<policy::postgres_model>(const config::tool&, const config::model&)>
        measure{};
    // Looks at the homes that an operator asks for; they change nothing.
    std::function<move::checked(placement::tool_entry&, move::surroundings&)> verify{};
    std::function<move::checked(placement::tool_entry&, move::surroundings&)> eject{};
    // An operator's word on which home holds.
    std::function<move::adopted(const move::adoption&, move::surroundings&)> adopt{};
};

world real_world();  // move::run and its kin

// Keeps what was sampled for a replay; does nothing unless it was opened.
class recorder {
  public:
    virtual ~recorder() = default;
    virtual void add(const std::string& lines) = 0;
    [[nodiscard]] virtual std::uint64_t bytes() const = 0;
    [[nodiscard]] virtual std::uint64_t errors() const = 0;
};
// Two pieces of half the size: FILE, and FILE.1 with what came before it. nullptr: not wanted.
std::unique_ptr<recorder> open_recorder(const config::recording& wanted);

// Shared by all parts; outlives them.
struct context {
    live_model& model;
    placement::tool_table& tools;
    placement::store& store;
    std::function<policy::time_point()> now;
    event_log log;
    world act;
    recorder* record{nullptr};
    // In a fleet: what a move asks of the others, and whether this sidecar decides. Alone: nothing.
    move::fleet* others{nullptr};
    std::function<bool()> decides{};
    [[nodiscard]] bool may_decide() const { return !decides || decides(); }
};

}  // namespace hotlane::control
