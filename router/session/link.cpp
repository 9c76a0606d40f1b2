// Opening the link to the home and logging in there. The home is not trusted: what it asks for is
// bounded, a password never leaves in clear, and a server that is only starting is asked again.
#include <algorithm>

#include "router/session/implementation.hpp"
#include "router/wire/sqlstate.hpp"

namespace hotlane::session {
namespace {

// Between two tries while the home is starting. Short: the first answer is due within half a
// second of the server being up.
constexpr milliseconds retry_gap{100};
constexpr std::uint32_t login_message_max = 64 * 1024;
constexpr std::size_t statuses_max = 200;
constexpr std::size_t status_bytes_max = 8 * 1024;

constexpr std::uint32_t auth_ok = 0, auth_sasl = 10, auth_sasl_continue = 11, auth_sasl_final = 12;

}  // namespace

void session::implementation::start_link() {
    const auto& target = env_.target();
    if (!link_deadline_) link_deadline_ = now_ + limits_.connect_timeout;
    link_ = link_phase::opening;
    link_kind_ = target.kind;
    link_generation_ = target.generation;
    link_inbox_.clear();
    link_rest_ = 0;
    link_status_.clear();
    greeting_.clear();
    scram_.reset();
    sasl_step_ = 0;
    login_done_ = false;
    link_level_ = level::unknown;
    act(open_link{link_generation_});
    const auto left = std::chrono::duration_cast<milliseconds>(*link_deadline_ - now_);
    act(arm{timer::connect, std::max(left, milliseconds{1})});
}

void session::implementation::link_opened() {
    if (phase_ == phase::ended || link_ != link_phase::opening) return;
    const auto& target = env_.target();
    if (target.generation != link_generation_) {
        start_link();  // the route was swapped while we dialled
        return;
    }
    std::vector<std::pair<std::string, std::string>> packet;
    packet.emplace_back("user", target.user.empty() ? user_ : target.user);
    packet.emplace_back("database", target.database.empty() ? database_ : target.database);
    bool has_search_path = false;
    for (const auto& [name, value] : startup_) {
        has_search_path = has_search_path || name == "search_path" ||
                          (name == "options" && value.find("search_path") != std::string::npos);
        packet.emplace_back(name, value);
    }
    if (!target.search_path.empty() && !has_search_path)
        packet.emplace_back("search_path", target.search_path);
    to_link_.clear();
    wire::append_startup(to_link_.out(), packet);
    link_ = link_phase::login;
}

void session::implementation::login_bytes(std::string_view bytes) {
    link_inbox_.append(bytes);
    std::size_t taken = 0;
    bool ready = false;
    while (link_ == link_phase::login && !ready) {
        const auto frame =
            wire::scan_frame(std::string_view(link_inbox_).substr(taken), login_message_max);
        if (frame.status == wire::scan_status::need_more) break;
        if (frame.status == wire::scan_status::invalid) {
            give_up_link(texts::broken_home(wire::to_string(frame.error)));
            return;
        }
        taken += frame.header.total_size();
        ready = frame.header.tag == wire::tag_b::ready && login_done_;
        if (!ready && !login_message(frame.header.tag, frame.body)) return;
    }
    if (!ready) {
        link_inbox_.erase(0, taken);
        return;
    }
    if (taken != link_inbox_.size()) {
        give_up_link(texts::broken_home("it speaks before it is asked"));
        return;
    }
    link_inbox_.clear();
    login_ready();
}

bool session::implementation::login_message(char tag, std::string_view body) {
    switch (tag) {
        case wire::tag_b::authentication:
            authenticate(body);
            return link_ == link_phase::login;
        case wire::tag_b::error:
            login_error(body);
            return false;
        case wire::tag_b::notice:
            if (greeting_.size() < limits_.buffer_bytes) wire::append_bytes(greeting_, tag, body);
            return true;
        case wire::tag_b::negotiate:
            return true;  // we asked for 3.0; the client was answered by us
        case wire::tag_b::parameter_status: {
            const auto status = wire::decode_parameter_status(body);
            if (!status || !login_done_ || link_status_.size() >= statuses_max ||
                body.size() > status_bytes_max)
                break;
            link_status_.emplace_back(status->name, status->value);
            return true;
        }
        case wire::tag_b::backend_key: {
            const auto key = wire::decode_backend_key(body);
            if (!key || !login_done_) break;
            key_ = {key->process_id, std::string(key->secret_key)};
            return true;
        }
        default:
            break;
    }
    give_up_link(texts::broken_home("unexpected message during login"));
    return false;
}

void session::implementation::authenticate(std::string_view body) {
    const auto request = wire::decode_authentication(body);
    if (!request || login_done_) {
        give_up_link(texts::broken_home("unexpected authentication request"));
        return;
    }
    switch (request->kind) {
        case auth_ok:
            // A server that was challenged must have proved itself before it says yes.
            if (scram_ && sasl_step_ != 3) {
                give_up_link(texts::refused_authentication(tool_.name, "it skipped its own proof"));
                return;
            }
            login_done_ = true;
            scram_.reset();
            return;
        case auth_sasl:
        case auth_sasl_continue:
        case auth_sasl_final:
            answer_sasl(*request);
            return;
        default:
            give_up_link(texts::refused_authentication(
                tool_.name, "it asks for a password in a form that is never sent"));
            return;
    }
}

void session::implementation::answer_sasl(const wire::authentication& request) {
    const auto fail = [&](std::string_view why) {
        give_up_link(texts::refused_authentication(tool_.name, why));
    };
    if (request.kind == auth_sasl && sasl_step_ == 0) {
        const auto& password = env_.target().password;
        if (password.empty()) return fail("it asks for a password and none is configured");
        if (!offers_scram(request.rest)) return fail("it offers no SCRAM-SHA-256");
        scram_.emplace(password);
        const auto first = scram_->first_message();
        std::string body("SCRAM-SHA-256");
        body.push_back('\0');
        const auto size = static_cast<std::uint32_t>(first.size());
        for (const int shift : {24, 16, 8, 0})
            body.push_back(static_cast<char>(size >> shift & 0xff));
        wire::append_bytes(to_link_.out(), wire::tag_f::password, body + first);
        sasl_step_ = 1;
    } else if (request.kind == auth_sasl_continue && sasl_step_ == 1) {
        const auto answer = scram_->final_message(request.rest);
        if (!answer) return fail(answer.error());
        wire::append_bytes(to_link_.out(), wire::tag_f::password, *answer);
        sasl_step_ = 2;
    } else if (request.kind == auth_sasl_final && sasl_step_ == 2) {
        if (!scram_->verify(request.rest)) return fail("it does not know the password itself");
        sasl_step_ = 3;
    } else {
        fail("its SASL exchange is out of order");
    }
}

void session::implementation::login_error(std::string_view body) {
    const auto fields = wire::decode_error(body);
    if (!fields) {
        give_up_link(texts::broken_home("malformed error"));
        return;
    }
    if (fields->sqlstate == wire::sqlstate::cannot_connect_now && link_deadline_ &&
        now_ + retry_gap < *link_deadline_) {
        retry_link(fields->message);
        return;
    }
    if (phase_ == phase::first_link) {
        // The home's own words, once and untouched; what it said before them, too.
        if (login_done_) wire::append_authentication(to_client_.out(), auth_ok);
        if (fields->sqlstate.empty()) {
            auto mended = *fields;
            mended.sqlstate = wire::sqlstate::internal_error;
            wire::append_error(to_client_.out(), mended);
        } else {
            wire::append_bytes(to_client_.out(), wire::tag_b::error, body);
        }
        end();
        return;
    }
    give_up_link(texts::refused_authentication(tool_.name, fields->message));
}

void session::implementation::retry_link(std::string_view why) {
    if (!link_deadline_ || now_ + retry_gap >= *link_deadline_) {
        give_up_link(texts::cannot_connect(tool_.name, why));
        return;
    }
    retry_reason_ = why;
    drop_link(false);
    link_ = link_phase::retrying;
    act(arm{timer::connect, retry_gap});
}

void session::implementation::link_failed(std::string_view why) {
    if (phase_ == phase::ended) return;
    const auto reason = retry_reason_.empty() ? std::string(why) : retry_reason_;
    give_up_link(texts::cannot_connect(tool_.name, reason));
}

// No link. At startup that ends the session; later it only refuses the transaction that needed it,
// since nothing of that has been sent.
void session::implementation::give_up_link(const refusal& why) {
    drop_link(false);
    link_deadline_.reset();
    retry_reason_.clear();
    act(disarm{timer::connect});
    if (phase_ == phase::first_link) {
        fatal(why);
        return;
    }
    refusal_ = why;
    pump();
}

void session::implementation::login_ready() {
    if (phase_ == phase::first_link) {
        for (const auto& [name, value] : link_status_) {
            note_status(name, value);
            wire::append_parameter_status(greeting_, name, value);
        }
        link_is_ready();
        finish_startup();
        return;
    }
    start_replay();
}

void session::implementation::link_is_ready() {
    link_ = link_phase::ready;
    link_deadline_.reset();
    retry_reason_.clear();
    status_ = wire::transaction_status::idle;
    in_block_ = false;
    act(disarm{timer::connect});
}

void session::implementation::drop_link(bool polite) {
    if (link_ == link_phase::none) return;
    settle();
    // Half-sent bytes of a link that goes have nowhere to go.
    if (polite && link_ == link_phase::ready)
        wire::append_empty(to_link_.out(), wire::tag_f::terminate);
    else
        to_link_.clear();
    link_ = link_phase::none;
    link_inbox_.clear();
    link_rest_ = 0;
    link_swallows_ = false;
    owed_.clear();
    key_ = {};
    act(close_link{});
}

}  // namespace hotlane::session
