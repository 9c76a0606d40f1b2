#include "tests/devengine/connection.hpp"

#include "router/wire/bytes.hpp"
#include "tests/devengine/values.hpp"

namespace hotlane::devengine {

namespace {

std::int16_t format_of(const std::vector<std::int16_t>& formats, std::size_t column) {
    if (formats.empty()) return 0;
    return formats.size() == 1 ? formats.front() : column < formats.size() ? formats[column] : 0;
}

}  // namespace

void connection::run() {
    if (!start()) return;
    while (auto message = socket_.read_message())
        if (!serve(*message)) break;
    socket_.flush();
}

bool connection::start() {
    for (;;) {
        const auto body = socket_.read_startup();
        if (!body) return false;
        const auto packet = wire::decode_first_packet(*body);
        if (!packet || std::holds_alternative<wire::cancel_request>(*packet)) return false;
        if (const auto* startup = std::get_if<wire::startup_message>(&*packet)) {
            greet(*startup);
            return true;
        }
        socket_.out().push_back('N');  // neither TLS nor GSS
    }
}

void connection::greet(const wire::startup_message& startup) {
    session_ = std::make_unique<session>(home_);
    auto& out = socket_.out();
    if (startup.minor > 0) wire::append_negotiate(out, 0, {});
    wire::append_authentication(out, 0);
    wire::append_parameter_status(out, "server_version", "15.0");
    wire::append_parameter_status(out, "server_encoding", "UTF8");
    wire::append_parameter_status(out, "client_encoding", "UTF8");
    wire::append_parameter_status(out, "DateStyle", "ISO, MDY");
    wire::append_parameter_status(out, "standard_conforming_strings", "on");
    wire::append_parameter_status(out, "application_name", "");
    wire::append_backend_key(out, 1, std::string_view("\0\0\0\0", 4));
    wire::append_ready(out, session_->status());
}

bool connection::serve(const incoming& message) {
    switch (message.tag) {
        case wire::tag_f::terminate:
            return false;
        case wire::tag_f::query:
            skipping_ = false;
            query(message.body);
            return true;
        case wire::tag_f::sync:
            sync();
            return true;
        case wire::tag_f::function_call:
            // As measured: an error and no ReadyForQuery.
            send_error({"0A000", "function call is not supported"});
            return true;
        case wire::tag_f::flush:
            return socket_.flush();
        case wire::tag_f::parse:
        case wire::tag_f::bind:
        case wire::tag_f::describe:
        case wire::tag_f::execute:
        case wire::tag_f::close:
            if (!skipping_) extended(message);
            return true;
        default:
            send_error({"08P01", "unknown message"});
            return false;
    }
}

void connection::query(std::string_view body) {
    const auto sql = wire::decode_query(body);
    if (!sql) {
        send_error({"08P01", "bad Query message"});
        wire::append_ready(socket_.out(), session_->status());
        return;
    }
    portals_.erase("");
    const auto statements = parse_script(*sql);
    if (statements.empty()) wire::append_empty(socket_.out(), wire::tag_b::empty_query);
    for (const auto& s : statements) {
        if (!s) session_->note_failure();
        auto answer = s ? session_->execute(*s, {}) : tl::unexpected(s.error());
        if (!answer) {
            send_error(answer.error());
            break;
        }
        const auto columns = answer->columns();
        if (!columns.empty()) send_columns(columns, {});
        if (!send_answer(*answer, columns, {}, 0)) break;
    }
    wire::append_ready(socket_.out(), session_->status());
}

void connection::send_columns(const std::vector<column_info>& columns,
                              const std::vector<std::int16_t>& formats) {
    std::vector<wire::column> described;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const auto type = columns[i].type;
        const bool fixed = type == oid::int8 || type == oid::float8;
        described.push_back({.name = columns[i].name,
                             .type = type,
                             .type_size = static_cast<std::int16_t>(fixed ? 8 : -1),
                             .type_modifier = -1,
                             .format = format_of(formats, i)});
    }
    wire::append_row_description(socket_.out(), described);
}

// False after an error in the middle of the rows.
bool connection::send_answer(cursor& answer,
                             const std::vector<column_info>& columns,
                             const std::vector<std::int16_t>& formats,
                             std::int32_t limit) {
    row values;
    std::int32_t sent = 0;
    for (;;) {
        if (limit > 0 && sent == limit) {
            wire::append_empty(socket_.out(), wire::tag_b::portal_suspended);
            return true;
        }
        const auto found = answer.next(values);
        if (!found) {
            session_->note_failure();
            send_error(found.error());
            return false;
        }
        if (!*found) break;
        ++sent;
        {
            wire::message_writer message(socket_.out(), wire::tag_b::data_row);
            message.i16(static_cast<std::int16_t>(values.size()));
            for (std::size_t i = 0; i < values.size(); ++i) {
                const auto type = i < columns.size() ? columns[i].type : oid::text;
                const auto bytes = encode(values[i], type, format_of(formats, i));
                if (bytes)
                    message.i32(static_cast<std::int32_t>(bytes->size())).bytes(*bytes);
                else
                    message.i32(-1);
            }
        }
        if (!socket_.flush_if_large()) return false;
    }
    wire::append_command_complete(socket_.out(), answer.tag());
    return true;
}

void connection::send_error(const sql_error& error) {
    wire::append_error(socket_.out(),
                       {.severity = "ERROR", .sqlstate = error.sqlstate, .message = error.message});
}

void connection::sync() {
    skipping_ = false;
    if (session_->status() == wire::transaction_status::idle) portals_.clear();
    wire::append_ready(socket_.out(), session_->status());
}

// ---- the extended protocol ----

void connection::extended(const incoming& message) {
    result<void> done;
    switch (message.tag) {
        case wire::tag_f::parse:
            done = parse(message.body);
            break;
        case wire::tag_f::bind:
            done = bind_portal(message.body);
            break;
        case wire::tag_f::describe:
            done = describe(message.body);
            break;
        case wire::tag_f::execute:
            done = execute(message.body);
            break;
        default:
            done = close(message.body);
            break;
    }
    if (done) return;
    session_->note_failure();
    send_error(done.error());
    skipping_ = true;
}

result<void> connection::parse(std::string_view body) {
    const auto message = wire::decode_parse(body);
    if (!message) return fail("08P01", "bad Parse message");
    auto parsed = parse_single(message->query);
    if (!parsed) return tl::unexpected(parsed.error());
    const auto checked = session_->check(*parsed);
    if (!checked) return tl::unexpected(checked.error());
    auto entry = std::make_shared<prepared>();
    entry->parameter_types = session_->parameter_types(*parsed);
    entry->s = std::move(*parsed);
    for (std::size_t i = 0; i < message->parameter_types.size(); ++i) {
        if (i >= entry->parameter_types.size()) break;
        if (message->parameter_types[i] != 0)
            entry->parameter_types[i] = message->parameter_types[i];
    }
    statements_[std::string(message->statement)] = std::move(entry);
    wire::append_empty(socket_.out(), wire::tag_b::parse_complete);
    return {};
}

result<void> connection::bind_portal(std::string_view body) {
    const auto message = wire::decode_bind(body);
    if (!message) return fail("08P01", "bad Bind message");
    const auto found = statements_.find(std::string(message->statement));
    if (found == statements_.end())
        return fail("26000", "no such prepared statement: " + std::string(message->statement));
    const auto& types = found->second->parameter_types;
    if (message->parameters.size() != types.size())
        return fail("08P01", "wrong number of parameters");
    portal p{.from = found->second, .formats = message->result_formats};
    for (std::size_t i = 0; i < message->parameters.size(); ++i) {
        auto v = decode_parameter(
            message->parameters[i], types[i], format_of(message->parameter_formats, i));
        if (!v) return tl::unexpected(v.error());
        p.parameters.push_back(std::move(*v));
    }
    portals_.insert_or_assign(std::string(message->portal), std::move(p));
    wire::append_empty(socket_.out(), wire::tag_b::bind_complete);
    return {};
}

// A reading portal is run when it is described, so that its columns have the types of its rows.
result<void> connection::open(portal& p) {
    if (p.answer) return {};
    auto answer = session_->execute(p.from->s, p.parameters);
    if (!answer) return tl::unexpected(answer.error());
    p.answer = std::move(*answer);
    return {};
}

std::vector<column_info> connection::columns_of(const portal& p) const {
    if (p.from->described) return *p.from->described;
    return p.answer ? p.answer->columns() : std::vector<column_info>{};
}

result<void> connection::describe(std::string_view body) {
    const auto target = wire::decode_target(body);
    if (!target) return fail("08P01", "bad Describe message");
    const std::string name(target->name);
    std::shared_ptr<prepared> from;
    std::vector<std::int16_t> formats;
    if (target->kind == 'P') {
        const auto found = portals_.find(name);
        if (found == portals_.end()) return fail("34000", "no such portal: " + name);
        from = found->second.from;
        formats = found->second.formats;
        if (!from->described && from->s.kind == statement_kind::read)
            if (const auto opened = open(found->second); !opened) return opened;
        if (!from->described && found->second.answer) {
            const auto columns = found->second.answer->columns();
            send_columns(columns, formats);
            return {};
        }
    } else {
        const auto found = statements_.find(name);
        if (found == statements_.end()) return fail("26000", "no such prepared statement: " + name);
        from = found->second;
    }
    if (!from->described) {
        auto columns = session_->describe(from->s);
        if (!columns) return tl::unexpected(columns.error());
        from->described = std::move(*columns);
    }
    if (target->kind == 'S') {
        auto types = from->parameter_types;
        for (auto& type : types)
            if (type == 0) type = oid::text;
        wire::append_parameter_description(socket_.out(), types);
    }
    if (from->described->empty())
        wire::append_empty(socket_.out(), wire::tag_b::no_data);
    else
        send_columns(*from->described, formats);
    return {};
}

result<void> connection::execute(std::string_view body) {
    const auto message = wire::decode_execute(body);
    if (!message) return fail("08P01", "bad Execute message");
    const auto found = portals_.find(std::string(message->portal));
    if (found == portals_.end()) return fail("34000", "no such portal");
    auto& p = found->second;
    if (p.from->s.kind == statement_kind::empty) {
        wire::append_empty(socket_.out(), wire::tag_b::empty_query);
        return {};
    }
    if (const auto opened = open(p); !opened) return opened;
    const auto columns = columns_of(p);
    if (!send_answer(*p.answer, columns, p.formats, message->row_limit)) skipping_ = true;
    return {};
}

result<void> connection::close(std::string_view body) {
    const auto target = wire::decode_target(body);
    if (!target) return fail("08P01", "bad Close message");
    if (target->kind == 'S')
        statements_.erase(std::string(target->name));
    else
        portals_.erase(std::string(target->name));
    wire::append_empty(socket_.out(), wire::tag_b::close_complete);
    return {};
}

}  // namespace hotlane::devengine
