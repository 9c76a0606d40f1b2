// Which state store this process has, and what the others of its fleet see of it.
#pragma once

#include <memory>

#include "config/model.hpp"
#include "router/placement/fleet_store.hpp"

namespace hotlane::app {

placement::stored<std::unique_ptr<placement::fleet_store>> open_store(const config::model& model);
placement::sidecar_record describe_sidecar(const config::model& model);

}  // namespace hotlane::app
