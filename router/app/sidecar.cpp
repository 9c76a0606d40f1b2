#include "router/app/sidecar.hpp"

#include <unistd.h>

#include <array>
#include <random>

#include <fmt/format.h>

#include "config/load.hpp"

namespace hotlane::app {

namespace {

std::string host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return "?";
    return name.data();
}

std::string name_of(const config::fleet& with) {
    return with.name.empty() ? host_name() : with.name;
}

}  // namespace

placement::stored<std::unique_ptr<placement::fleet_store>> open_store(const config::model& model) {
    if (!model.shared_state) {
        auto file = placement::open_sqlite_store(model.state_file);
        if (!file)
            return tl::unexpected(
                placement::store_error{fmt::format("{}: {}", model.state_file, file.error().what)});
        return file;
    }
    const auto& with = *model.shared_state;
    const auto password = config::read_secret(with.password);
    if (!password)
        return tl::unexpected(placement::store_error{"state.password: " + password.error()});
    placement::postgres_target at;
    at.dsn = with.dsn;
    at.password = *password;
    at.connect_timeout = with.connect_timeout;
    at.statement_timeout = with.statement_timeout;
    at.idle_timeout = with.lease;
    at.name = "hotlane " + name_of(with);
    return placement::open_postgres_store(at);
}

placement::sidecar_record describe_sidecar(const config::model& model) {
    std::random_device device;
    placement::sidecar_record out;
    out.name = name_of(*model.shared_state);
    out.id = fmt::format("{}-{}-{:08x}{:08x}", out.name, ::getpid(), device(), device());
    out.version = HOTLANE_VERSION;
    out.admin = model.admin_socket;
    out.lease = model.shared_state->lease;
    return out;
}

}  // namespace hotlane::app
