// Rows that PostgreSQL might refuse although every value is good: tried in preflight on the staged
// definitions, in a transaction that is rolled back. What the engine's rules allow and PostgreSQL's
// do not: an index entry beyond its page, a CHECK that raises.
#pragma once

#include <string>
#include <vector>

#include "router/move/link.hpp"
#include "router/move/plan.hpp"

namespace hotlane::move {

struct trial_limits {
    std::size_t long_key{1'500};  // bytes of the values of one key or UNIQUE from where it is tried
    std::size_t batch_rows{200};
    std::uint64_t rows_max{200'000};  // of one table; later ones are not tried
    std::size_t refusals_max{5};
};

class row_trial {
  public:
    // `schema` has the tables, in the transaction that is open on `postgres`.
    row_trial(home_link& postgres, const table& t, std::string schema, trial_limits limits = {});

    void add(const std::vector<value>& values);
    void finish();

    [[nodiscard]] const std::vector<refusal>& refusals() const noexcept { return refusals_; }
    [[nodiscard]] bool left_some() const noexcept { return left_; }

  private:
    struct tried_row {
        std::vector<param> params;
        std::string name;
    };
    [[nodiscard]] bool wanted(const std::vector<value>& values) const;
    void try_rows(std::size_t from, std::size_t to);
    [[nodiscard]] answer<void> insert(std::size_t from, std::size_t to);

    home_link& postgres_;
    const table& t_;
    std::string schema_;
    trial_limits limits_;
    bool every_row_{false};
    std::vector<std::vector<std::size_t>> keys_;
    std::vector<tried_row> rows_;
    std::vector<refusal> refusals_;
    std::uint64_t tried_{0};
    bool left_{false};
};

// A CHECK that can do more than say no: it divides, casts or calls.
bool may_raise(const table& t);

}  // namespace hotlane::move
