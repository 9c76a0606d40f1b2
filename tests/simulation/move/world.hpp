// Both homes, the store, the bystanders who go round hotlane, and the processes that come and go.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine.hpp"
#include "postgres.hpp"
#include "router/move/job.hpp"
#include "router/placement/route.hpp"

namespace sim {

// The store's promise without a file.
class memory_store final : public hotlane::placement::store {
  public:
    template <typename V>
    using stored = hotlane::placement::stored<V>;
    using placement_record = hotlane::placement::placement_record;
    using move_record = hotlane::placement::move_record;
    using decision_record = hotlane::placement::decision_record;

    stored<std::vector<placement_record>> placements() override;
    stored<std::optional<placement_record>> placement(const std::string& tool) override;
    stored<bool> put_placement(const placement_record& record) override;
    stored<void> put_move(const move_record& record) override;
    stored<std::optional<move_record>> move(const std::string& id) override;
    stored<std::vector<move_record>> unfinished_moves() override;
    stored<std::vector<move_record>> recent_moves(std::size_t limit) override;
    stored<std::uint64_t> add_decision(const decision_record&) override { return 1U; }
    stored<std::vector<decision_record>> decisions(const std::string&, std::size_t) override {
        return std::vector<decision_record>{};
    }
    stored<void> add_ddl(const std::string&, const std::string&) override { return {}; }
    stored<std::vector<std::string>> ddl(const std::string&) override {
        return std::vector<std::string>{};
    }
    stored<void> put_document(const std::string& kind,
                              const std::string& name,
                              const nlohmann::json& body) override {
        documents_[kind + "/" + name] = body;
        return {};
    }
    stored<std::optional<nlohmann::json>> document(const std::string& kind,
                                                   const std::string& name) override {
        const auto at = documents_.find(kind + "/" + name);
        return at == documents_.end() ? std::optional<nlohmann::json>{} : std::optional(at->second);
    }
    void forget() { placements_.clear(), moves_.clear(), documents_.clear(); }

  private:
    std::map<std::string, placement_record> placements_;
    std::map<std::string, move_record> moves_;
    std::map<std::string, nlohmann::json> documents_;
};

struct world {
    engine at_engine;
    postgres at_postgres;
    memory_store store;
    hotlane::config::model model;
    std::uint64_t ids{1};
    // One in so many probes an application runs CREATE TABLE IF NOT EXISTS (0: none does), by a
    // fixed seed. One that did before every statement could keep a name from its owner for ever.
    std::uint32_t bystanders_make_tables{0};
    bool made_tables{false};
    std::uint32_t chance{1};

    // Moves out copy ahead of their hold.
    bool ahead{false};
    // Applications come to the engine through this tool of hotlane's, where it lives there;
    // nullptr: they go round hotlane.
    bool by_hotlane{false};
    hotlane::placement::tool_entry* through{nullptr};

    int next_key{1};
    std::vector<std::string> accepted;  // keys that some home took
    bool both_accepted{false};

    world();
    // Each home is asked once to take a row, from outside.
    std::vector<hotlane::policy::home_kind> probe();
    bool engine_accepts(const std::string& key);
    // Rows of t at a home; strays are rows that were renamed aside with an alarm.
    [[nodiscard]] std::vector<std::string> rows_at(hotlane::policy::home_kind home);
    [[nodiscard]] std::vector<std::string> strays();
    [[nodiscard]] std::vector<std::string> pairs_of_u(hotlane::policy::home_kind home);  // by id
};

// One life of hotlane's control plane.
struct process {
    world& w;
    script steps;
    hotlane::placement::tool_table tools;
    std::shared_ptr<hotlane::placement::tool_entry> tool;
    hotlane::move::surroundings around;
    std::unique_ptr<hotlane::move::connector> homes;
    hotlane::move::context with;

    explicit process(world& in);
    ~process() { w.through = nullptr; }
    void saw(const std::string& sql);  // a client ran it
    // False: killed on the way.
    bool move(hotlane::policy::home_kind to, hotlane::move::report* out = nullptr);
    bool recover(bool* known);
    bool adopt(hotlane::policy::home_kind home, hotlane::move::adopted* out = nullptr);
};

}  // namespace sim
