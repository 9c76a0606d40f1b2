#include "router/control/controller.hpp"

#include <algorithm>
#include <string>

#include "config/load.hpp"
#include "router/control/api.hpp"
#include "router/control/json.hpp"

namespace hotlane::control {

using nlohmann::json;

namespace {

constexpr std::size_t moves_looked_at = 200, moves_looked_at_max = 12'800;
constexpr const char* cleaned_kind = "cleaned";

// As many movers as the most generous policy may want; each policy's own rail is checked before.
mover::settings sized(mover::settings with, const config::model& model) {
    for (const auto& [name, policy] : model.policies)
        with.moves_at_once = std::max(with.moves_at_once, policy.rails.moves_at_once);
    return with;
}

}  // namespace

controller::controller(config::model model,
                       placement::tool_table& tools,
                       placement::store& store,
                       world act,
                       open_counters open,
                       event_log log,
                       process_hooks hooks,
                       std::function<policy::time_point()> now,
                       settings with)
    : model_(std::move(model)),
      record_(open_recorder(model_.get()->record)),
      in_{model_, tools, store, std::move(now), std::move(log), std::move(act), record_.get()},
      hooks_(std::move(hooks)),
      with_(with),
      mover_(in_, sized(with.moving, *model_.get())),
      placer_(in_, with.placing),
      sampler_(in_, std::move(open), with.sampling),
      started_(in_.now()),
      exposition_([this] { return take_snapshot(); }) {
    reloads_.succeeded_at = started_;
}

void controller::join_fleet(coordinator& with) {
    coordinator_ = &with;
    in_.others = &with;
    in_.decides = [&with] { return with.decides(); };
}

void controller::remember_moves() {
    const auto moves = in_.store.recent_moves(moves_looked_at);
    if (!moves) return;
    for (auto it = moves->rbegin(); it != moves->rend(); ++it)
        fleet_.remember_move(it->started);
}

void controller::start_fleet() {
    placer_.on_tried = [this](placement::tool_entry& entry, bool placed) {
        coordinator_->looked(entry, placed);
    };
    coordinator::hooks with;
    with.elected = [this] { placer_.look_again(); };
    with.looked = [this] { return placer_.tried_all(); };
    with.leading = [this] {
        remember_moves();
        for (const auto& each : desks())
            each->take_over();
    };
    with.moving = [this](const std::string& tool) { return works_on(tool); };
    coordinator_->start(std::move(with));
}

void controller::start() {
    if (in_.may_decide()) remember_moves();
    in_.tools.on_new = [this](placement::tool_entry& entry) {
        if (coordinator_ != nullptr) coordinator_->meet(entry);
        placer_.meet(entry);
    };
    in_.tools.on_ddl = [this] {
        {
            const std::lock_guard lock(ddl_mutex_);
            ddl_due_ = true;
        }
        ddl_passed_.notify_one();
    };
    placer_.moving = [this](const std::string& tool) { return works_on(tool); };
    placer_.on_placed = [this](placement::tool_entry& entry) { placed(entry); };
    for (const auto& entry : in_.tools.all())
        open_desk(entry);
    mover_.start([this](const order& given) { move_begun(given); },
                 [this](const order& ended) { move_ended(ended); });
    sampler_.start();
    if (coordinator_ != nullptr) start_fleet();
    placer_.start();
    ddl_keeper_ = std::jthread([this](const std::stop_token& stop) { keep_ddl(stop); });
    ticker_ = std::jthread([this](const std::stop_token& stop) { tick_all(stop); });
}

bool controller::stop(std::chrono::milliseconds grace) {
    if (stopped_.exchange(true)) return true;
    stopping_ = true;
    draining_ = true;
    if (ticker_.joinable()) {
        ticker_.request_stop();
        ticker_.join();
    }
    if (ddl_keeper_.joinable()) {
        ddl_keeper_.request_stop();
        ddl_keeper_.join();
    }
    placer_.stop();
    sampler_.stop();
    const bool ended = mover_.stop(grace);
    for (const auto& each : desks()) {
        each->take_observations();
        each->save();
    }
    if (coordinator_ != nullptr) coordinator_->stop();
    return ended;
}

policy::settings controller::policy_of(const placement::tool_entry& entry) const {
    const auto model = model_.get();
    // The file may have changed what it says of the tool since the tool was made.
    const auto written = std::find_if(model->tools.begin(), model->tools.end(), [&](const auto& t) {
        return t.name == entry.settings.name;
    });
    return config::settings_of(*model, written == model->tools.end() ? entry.settings : *written);
}

std::shared_ptr<desk> controller::open_desk(const std::shared_ptr<placement::tool_entry>& entry) {
    const std::lock_guard lock(mutex_);
    auto& slot = desks_[entry->name];
    if (!slot) slot = std::make_shared<desk>(in_, fleet_, mover_, entry, policy_of(*entry));
    return slot;
}

void controller::placed(placement::tool_entry& entry) {
    const auto at = open_desk(in_.tools.find(entry.name));
    at->home_found(entry.current()->at.kind);
    sampler_.add(at);
}

void controller::move_begun(const order& given) {
    const auto at = find(given.what.tool);
    if (!at) return;
    at->take_observations();  // DDL that passed a moment ago belongs to the schema that is moved
    at->work_begins();
}

void controller::move_ended(const order& ended) {
    const auto entry = in_.tools.find(ended.what.tool);
    // The journal keeps what a shutdown interrupted; the next start finds out how it ended.
    if (const auto at = find(ended.what.tool); at && !stopping_) at->move_finished(ended);
    if (entry && !entry->current()->served && !stopping_) placer_.add(ended.what.tool);
}

tl::expected<std::string, std::string> controller::complete(const std::string& move) {
    const auto kept = in_.store.move(move);
    if (!kept) return tl::unexpected(kept.error().what);
    if (!kept->has_value()) return tl::unexpected("no move has the id " + move);
    const auto& record = **kept;
    if (record.outcome.empty()) return tl::unexpected(std::string("the move has not ended"));
    if (mover_.busy(record.tool))
        return tl::unexpected("a move of " + record.tool + " is under way");
    if (record.outcome != "done") return std::string("nothing of it is kept");
    const std::lock_guard one_at_a_time(cleaning_);
    if (was_cleaned(record.id)) return std::string("its fenced copy was dropped before");
    clean_one(record);
    if (was_cleaned(record.id)) return std::string("its fenced copy is dropped");
    const auto alarms = late_writes();
    const auto alarm = alarms.find(record.id);
    return tl::unexpected(alarm == alarms.end() ? std::string("a home did not answer; try again")
                                                : alarm->second);
}

move::checked controller::look_at(
    const std::string& tool,
    const std::function<move::checked(placement::tool_entry&, move::surroundings&)>& what) {
    const auto model = model_.get();
    const auto entry = in_.tools.find(tool);
    if (const auto at = find(tool)) {
        at->take_observations();
        at->work_begins();  // the engine's counters see our scans
    }
    if (!entry) return {};
    const std::atomic<bool>* stop = &stopping_;
    move::surroundings around{*model, in_.tools, in_.store, in_.now, {}, stop, in_.others};
    return what(*entry, around);
}

bool controller::works_on(const std::string& tool) const {
    if (mover_.busy(tool)) return true;
    const std::lock_guard lock(mutex_);
    return adopting_.count(tool) > 0;
}

move::adopted controller::adopt(const move::adoption& what) {
    const std::lock_guard one_at_a_time(cleaning_);  // the copies that it needs stay
    {
        const std::lock_guard lock(mutex_);
        adopting_.insert(what.tool);
    }
    const auto model = model_.get();
    const std::atomic<bool>* stop = &stopping_;
    move::surroundings around{*model, in_.tools, in_.store, in_.now, {}, stop, in_.others};
    auto out = in_.act.adopt(what, around);
    {
        const std::lock_guard lock(mutex_);
        adopting_.erase(what.tool);
    }
    const auto entry = in_.tools.find(what.tool);
    if (!what.execute || !entry) return out;
    const bool served = entry->current()->served;
    if (coordinator_ != nullptr) coordinator_->looked(*entry, served);
    if (served) placed(*entry);
    if (in_.act.poke) in_.act.poke(what.tool);
    placer_.add(what.tool);  // looks once more, and goes on where a home did not answer
    in_.log(out.done ? severity::warning : severity::error,
            "home_adopted",
            {{"tool", what.tool},
             {"home", policy::to_string(what.home)},
             {"by", what.ordered_by},
             {"done", out.done},
             {"epoch", entry->current()->epoch}});
    return out;
}

move::report controller::rehearse(const move::request& what) {
    const auto model = model_.get();
    if (const auto at = find(what.tool)) {
        at->take_observations();
        at->work_begins();
    }
    const std::atomic<bool>* stop = &stopping_;
    move::surroundings around{*model, in_.tools, in_.store, in_.now, {}, stop, in_.others};
    return in_.act.run(what, around);
}

std::shared_ptr<desk> controller::find(const std::string& tool) const {
    const std::lock_guard lock(mutex_);
    const auto found = desks_.find(tool);
    return found == desks_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<desk>> controller::desks() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<desk>> out;
    out.reserve(desks_.size());
    for (const auto& [name, each] : desks_)
        out.push_back(each);
    return out;
}

std::map<std::string, std::string> controller::late_writes() const {
    const std::lock_guard lock(mutex_);
    return late_writes_;
}

controller::reload_figures controller::reloads() const {
    const std::lock_guard lock(mutex_);
    return reloads_;
}

// A store that refuses is tried again by the ticker; here only what has just passed is brought in.
void controller::keep_ddl(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        {
            std::unique_lock lock(ddl_mutex_);
            if (!ddl_passed_.wait(lock, stop, [this] { return ddl_due_; })) return;
            ddl_due_ = false;
        }
        // Who follows has its DDL kept by the coordinator; the rest goes to the leader.
        if (!in_.may_decide() && coordinator_ != nullptr) {
            coordinator_->keep_all_ddl();
            continue;
        }
        for (const auto& each : desks())
            if (each->entry().seen.ddl_unkept() > 0) each->take_observations();
    }
}

void controller::tick_all(const std::stop_token& stop) {
    std::mutex sleep;
    std::condition_variable_any wake;
    using steady = std::chrono::steady_clock;
    auto cleaned_at = steady::now();
    std::unique_lock lock(sleep);
    while (!stop.stop_requested()) {
        wake.wait_for(lock, stop, with_.tick, [] { return false; });
        if (stop.stop_requested()) return;
        for (const auto& each : desks())
            each->tick();
        if (steady::now() - cleaned_at >= with_.clean_every) {
            if (in_.may_decide()) clean_up();
            cleaned_at = steady::now();
        }
    }
}

// What a move left: a fenced copy is kept for `keep`, what an undone move staged is nobody's.
bool controller::is_due(const placement::move_record& record) {
    const auto entry = in_.tools.find(record.tool);
    if (!entry || record.ended == policy::time_point{} || mover_.busy(record.tool)) return false;
    // While nobody knows where the tool lives, its last copy may be what an operator needs.
    if (!entry->current()->served) return false;
    const policy::duration wait =
        record.outcome == "done" ? entry->settings.keep : with_.clean_undone_after;
    if (record.outcome != "done" && record.outcome != "undone" &&
        record.outcome != move::dry_run_outcome)
        return false;
    return in_.now() - record.ended >= wait && !was_cleaned(record.id);
}

bool controller::was_cleaned(const std::string& move) {
    if (cleaned_.count(move) > 0) return true;
    const auto kept = in_.store.document(cleaned_kind, move);
    const bool is_there = kept && kept->has_value();
    if (is_there) cleaned_.insert(move);
    return is_there;
}

void controller::clean_up() {
    // As far back as anything may be left: once all older ones are tidy they are read no more.
    auto moves = in_.store.recent_moves(moves_looked_at);
    for (std::size_t n = moves_looked_at; moves && moves->size() == n &&
                                          moves->back().id > tidy_up_to_ &&
                                          n < moves_looked_at_max;) {
        n *= 4;
        moves = in_.store.recent_moves(n);
    }
    if (!moves) return;
    const std::lock_guard one_at_a_time(cleaning_);
    std::string first_left;
    for (const auto& record : *moves) {
        if (record.id <= tidy_up_to_) continue;
        if (is_due(record)) clean_one(record);
        const bool nothing = record.outcome == "refused" ||
                             record.outcome == move::adopted_outcome || was_cleaned(record.id);
        if (!nothing && (first_left.empty() || record.id < first_left)) first_left = record.id;
    }
    for (const auto& record : *moves)
        if ((first_left.empty() || record.id < first_left) && record.id > tidy_up_to_)
            tidy_up_to_ = record.id;
}

void controller::clean_one(const placement::move_record& record) {
    const auto model = model_.get();
    move::surroundings around{*model, in_.tools, in_.store, in_.now, {}, &stopping_, in_.others};
    const auto result = in_.act.clean(record, around);
    const json fields{{"tool", record.tool}, {"move", record.id}, {"alarm", result.late_write}};
    if (!result.late_write.empty()) {
        const std::lock_guard lock(mutex_);
        if (late_writes_.emplace(record.id, result.late_write).second)
            in_.log(severity::error, "late_write", fields);
        return;
    }
    if (!result.dropped) return;  // a home did not answer: later
    const auto kept = in_.store.put_document(cleaned_kind, record.id, {{"at", to_json(in_.now())}});
    if (kept) cleaned_.insert(record.id);
    in_.log(severity::info, "fenced_copy_dropped", fields);
    const std::lock_guard lock(mutex_);
    late_writes_.erase(record.id);
}

admin::api_answer controller::handle(const admin::api_request& request) {
    return answer(*this, request);
}

bool controller::live() {
    return !hooks_.data_plane_alive || hooks_.data_plane_alive();
}

bool controller::ready(std::vector<std::string>& failed_checks) {
    if (draining_) failed_checks.emplace_back("draining");
    if (!live()) failed_checks.emplace_back("the data plane does not answer");
    if (!placer_.tried_all()) failed_checks.emplace_back("still asking the homes where tools live");
    // A store that is away stops moves, not the service: homes that confirm themselves are served.
    if (coordinator_ != nullptr) {
        const auto unconfirmed = coordinator_->now().unconfirmed;
        if (unconfirmed > 0)
            failed_checks.push_back(std::to_string(unconfirmed) +
                                    " tools whose home neither the store nor a marker confirms");
    }
    return failed_checks.empty();
}

}  // namespace hotlane::control
