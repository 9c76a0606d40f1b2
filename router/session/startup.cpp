// The first packets of a client, before anything is believed of it. Nothing grows here: a packet
// has at most startup_size_max bytes, and what cannot be one ends the connection at once.
#include <algorithm>

#include "router/session/implementation.hpp"
#include "router/wire/bytes.hpp"

namespace hotlane::session {
namespace {

constexpr std::uint32_t code_cancel = 80877102, code_ssl = 80877103, code_gssenc = 80877104;
constexpr std::uint32_t newest_protocol = std::uint32_t{3} << 16;

bool is_first_packet_code(std::uint32_t code) {
    return code == code_cancel || code == code_ssl || code == code_gssenc ||
           (code >> 16 >= 1 && code >> 16 <= 9);
}

bool is_truthy(std::string_view value) {
    return !(value.empty() || value == "false" || value == "off" || value == "no" || value == "0");
}

}  // namespace

std::size_t session::implementation::take_first_packets(std::string_view bytes) {
    std::size_t taken = 0;
    while (phase_ == phase::first_packet) {
        const auto rest = bytes.substr(taken);
        // Decided on the first eight bytes, so that HTTP or a TLS hello does not linger.
        if (rest.size() >= 8 && !is_first_packet_code(wire::load_u32(rest.data() + 4))) {
            end();
            break;
        }
        const auto frame = wire::scan_startup(rest);
        if (frame.status == wire::scan_status::need_more) break;
        if (frame.status == wire::scan_status::invalid) {
            end();
            break;
        }
        taken += 4 + frame.body.size();
        const auto packet = wire::decode_first_packet(frame.body);
        if (!packet) {
            refuse_startup_bytes(frame.body);
        } else if (std::holds_alternative<wire::ssl_request>(*packet) ||
                   std::holds_alternative<wire::gssenc_request>(*packet)) {
            auto& seen =
                std::holds_alternative<wire::ssl_request>(*packet) ? ssl_requests_ : gss_requests_;
            if (++seen > 1)
                end();
            else
                to_client_.out().push_back('N');
        } else if (const auto* cancel = std::get_if<wire::cancel_request>(&*packet)) {
            act(forward_cancel{cancel->process_id, std::string(cancel->secret_key)});
            end();
        } else {
            take_startup(std::get<wire::startup_message>(*packet));
        }
    }
    return taken;
}

// A whole packet of a believable length that is none: only one that meant to be a startup message
// is answered.
void session::implementation::refuse_startup_bytes(std::string_view packet) {
    const auto code = packet.size() < 4 ? 0U : wire::load_u32(packet.data());
    const auto major = code >> 16;
    if (major == 3)
        fatal(texts::bad_startup());
    else if (major >= 1 && major <= 9)
        fatal(texts::unsupported_protocol());
    else
        end();
}

bool session::implementation::note_startup_parameters(const wire::startup_message& message) {
    auto who = std::make_shared<link_identity>();
    for (const auto& [name, value] : message.parameters) {
        if (name == "user") {
            who->user = value;
        } else if (name == "database") {
            who->database = value;
        } else if (name == "replication") {
            if (is_truthy(value)) {
                fatal(texts::replication());
                return false;
            }
        } else if (!name.starts_with("_pq_.")) {
            who->parameters.emplace_back(name, value);
        }
    }
    if (who->user.empty()) {
        fatal(texts::missing_user());
        return false;
    }
    if (who->database.empty()) who->database = who->user;
    identity_ = std::move(who);
    return true;
}

void session::implementation::take_startup(const wire::startup_message& message) {
    if (!client_is_local_) {
        fatal(texts::not_local());
        return;
    }
    if (!note_startup_parameters(message)) return;
    refusal why;
    std::string_view application_name;
    for (const auto& [name, value] : identity_->parameters)
        if (name == "application_name") application_name = value;
    if (!env_.resolve(identity_->user, identity_->database, application_name, tool_, why)) {
        fatal(why);
        return;
    }
    const auto& target = env_.target();
    if (!target.served) {
        fatal(texts::not_served(tool_.name, target.reason));
        return;
    }
    std::vector<std::string> unknown;
    for (const auto& [name, value] : message.parameters)
        if (name.starts_with("_pq_.")) unknown.emplace_back(name);
    if (message.minor > 0 || !unknown.empty())
        wire::append_negotiate(to_client_.out(), newest_protocol, unknown);
    note_startup_isolation();
    phase_ = phase::first_link;
    act(disarm{timer::login});
    if (!is_pooled()) {
        start_link();
    } else if (const auto known = env_.greeting(*identity_)) {
        greet(known, {});
    } else {
        want_link();
    }
}

void session::implementation::greet(const pairs_ptr& status, std::string_view notices) {
    // Drivers and tools compare the number with pg_backend_pid(): where it can be, it is the true
    // one.
    const auto number = is_pooled() ? env_.process_number() : key_.process_id;
    const auto secret = env_.issue_secret(number);
    auto& out = to_client_.out();
    wire::append_authentication(out, 0);
    out.append(notices);
    for (const auto& [name, value] : *status) {
        note_syntax(name, value);
        wire::append_parameter_status(out, name, value);
    }
    told_status_ = status;
    wire::append_backend_key(out, number, secret);
    wire::append_ready(out, wire::transaction_status::idle);
    // What the client has sent behind its startup packet is taken by whoever called.
    phase_ = phase::relaying;
    if (shutting_down_) fatal(texts::shutdown());
}

}  // namespace hotlane::session
