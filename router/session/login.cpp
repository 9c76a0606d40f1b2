#include "router/session/login.hpp"

#include <openssl/crypto.h>

#include <utility>

#include "router/session/texts.hpp"
#include "router/wire/sqlstate.hpp"

namespace hotlane::session {
namespace {

constexpr std::uint32_t login_message_max = 64 * 1024;
constexpr std::size_t statuses_max = 200;
constexpr std::size_t status_bytes_max = 8 * 1024;

constexpr std::uint32_t auth_ok = 0, auth_sasl = 10, auth_sasl_continue = 11, auth_sasl_final = 12;

}  // namespace

link_login::link_login(std::string tool, std::string password, std::size_t notice_bytes_max)
    : tool_(std::move(tool)), password_(std::move(password)), notice_bytes_max_(notice_bytes_max) {}

void link_login::append_startup(std::string& out,
                                const link_identity& who,
                                const link_target& target) {
    pairs packet;
    packet.reserve(who.parameters.size() + 3);
    packet.emplace_back("user", target.user.empty() ? who.user : target.user);
    packet.emplace_back("database", target.database.empty() ? who.database : target.database);
    for (const auto& one : who.parameters)
        packet.push_back(one);
    if (!target.search_path.empty() && !who.sets("search_path"))
        packet.emplace_back("search_path", target.search_path);
    wire::append_startup(out, packet);
}

link_login::state link_login::feed(std::string_view bytes, std::string& out) {
    inbox_.append(bytes);
    std::size_t taken = 0;
    for (;;) {
        const auto rest = std::string_view(inbox_).substr(taken);
        const auto frame = wire::scan_frame(rest, login_message_max);
        if (frame.status == wire::scan_status::need_more) break;
        if (frame.status == wire::scan_status::invalid)
            return refuse(texts::broken_home(wire::to_string(frame.error)));
        taken += frame.header.total_size();
        if (frame.header.tag == wire::tag_b::ready && let_in_) {
            if (taken != inbox_.size())
                return refuse(texts::broken_home("it speaks before it is asked"));
            std::string().swap(inbox_);
            return state::ready;
        }
        const auto now = message(frame.header.tag, frame.body, out);
        if (now != state::going) return now;
    }
    inbox_.erase(0, taken);
    return state::going;
}

pairs_ptr link_login::status() {
    return std::make_shared<const pairs>(std::exchange(status_, {}));
}

link_login::state link_login::message(char tag, std::string_view body, std::string& out) {
    switch (tag) {
        case wire::tag_b::authentication:
            return authenticate(body, out);
        case wire::tag_b::error:
            return failed(body);
        case wire::tag_b::notice:
            if (notices_.size() < notice_bytes_max_) wire::append_bytes(notices_, tag, body);
            return state::going;
        case wire::tag_b::negotiate:
            return state::going;  // we asked for 3.0; the client was answered by us
        case wire::tag_b::parameter_status: {
            const auto status = wire::decode_parameter_status(body);
            if (!status || !let_in_ || status_.size() >= statuses_max ||
                body.size() > status_bytes_max)
                break;
            status_.emplace_back(status->name, status->value);
            return state::going;
        }
        case wire::tag_b::backend_key: {
            const auto key = wire::decode_backend_key(body);
            if (!key || !let_in_) break;
            key_ = {key->process_id, std::string(key->secret_key)};
            return state::going;
        }
        default:
            break;
    }
    return refuse(texts::broken_home("unexpected message during login"));
}

link_login::state link_login::authenticate(std::string_view body, std::string& out) {
    const auto request = wire::decode_authentication(body);
    if (!request || let_in_) return refuse(texts::broken_home("unexpected authentication request"));
    switch (request->kind) {
        case auth_ok:
            // A server that was challenged must have proved itself before it says yes.
            if (scram_ && sasl_step_ != 3)
                return refuse(texts::refused_authentication(tool_, "it skipped its own proof"));
            let_in_ = true;
            scram_.reset();
            OPENSSL_cleanse(password_.data(), password_.size());
            return state::going;
        case auth_sasl:
        case auth_sasl_continue:
        case auth_sasl_final:
            return answer_sasl(*request, out);
        default:
            return refuse(texts::refused_authentication(
                tool_, "it asks for a password in a form that is never sent"));
    }
}

link_login::state link_login::answer_sasl(const wire::authentication& request, std::string& out) {
    const auto fail = [&](std::string_view why) {
        return refuse(texts::refused_authentication(tool_, why));
    };
    if (request.kind == auth_sasl && sasl_step_ == 0) {
        if (password_.empty()) return fail("it asks for a password and none is configured");
        if (!offers_scram(request.rest)) return fail("it offers no SCRAM-SHA-256");
        scram_.emplace(password_);
        const auto first = scram_->first_message();
        std::string body("SCRAM-SHA-256");
        body.push_back('\0');
        const auto size = static_cast<std::uint32_t>(first.size());
        for (const int shift : {24, 16, 8, 0})
            body.push_back(static_cast<char>(size >> shift & 0xff));
        wire::append_bytes(out, wire::tag_f::password, body + first);
        sasl_step_ = 1;
    } else if (request.kind == auth_sasl_continue && sasl_step_ == 1) {
        const auto answer = scram_->final_message(request.rest);
        if (!answer) return fail(answer.error());
        wire::append_bytes(out, wire::tag_f::password, *answer);
        sasl_step_ = 2;
    } else if (request.kind == auth_sasl_final && sasl_step_ == 2) {
        if (!scram_->verify(request.rest)) return fail("it does not know the password itself");
        sasl_step_ = 3;
    } else {
        return fail("its SASL exchange is out of order");
    }
    return state::going;
}

link_login::state link_login::failed(std::string_view body) {
    auto fields = wire::decode_error(body);
    if (!fields) return refuse(texts::broken_home("malformed error"));
    if (let_in_) wire::append_authentication(words_, auth_ok);  // what it said before, too
    const bool is_starting = fields->sqlstate == wire::sqlstate::cannot_connect_now;
    if (fields->sqlstate.empty()) {
        fields->sqlstate = wire::sqlstate::internal_error;
        wire::append_error(words_, *fields);
    } else {
        wire::append_bytes(words_, wire::tag_b::error, body);
    }
    refuse(texts::refused_authentication(tool_, fields->message));
    return is_starting ? state::again : state::refused;
}

link_login::state link_login::refuse(refusal why) {
    why_ = std::move(why);
    return state::refused;
}

}  // namespace hotlane::session
