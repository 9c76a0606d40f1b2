// A snapshot as Prometheus text. Families are built at the scrape from absolute values, so counters
// cannot drift from what they count. Served by the admin's HTTP server as
// `text/plain; version=0.0.4`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "metrics/snapshot.hpp"

namespace hotlane::metrics {

class exposition : public prometheus::Collectable {
  public:
    // `take` is called at each scrape, on the scraper's thread.
    explicit exposition(std::function<snapshot()> take);

    [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;
    [[nodiscard]] std::string text() const;

  private:
    std::function<snapshot()> take_;
};

std::vector<prometheus::MetricFamily> families(const snapshot& all);

}  // namespace hotlane::metrics
