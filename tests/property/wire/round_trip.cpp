// What is appended is what is decoded, and no bytes at all can upset a decoder.
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include <rapidcheck/catch.h>

#include "router/wire/bytes.hpp"
#include "router/wire/message.hpp"

using namespace hotlane::wire;

namespace {

// Text of the protocol's strings: anything but a zero.
std::string text() {
    return *rc::gen::container<std::string>(rc::gen::nonZero<char>());
}
std::string bytes() {
    return *rc::gen::arbitrary<std::string>();
}

// The body of the one message in `out`.
std::string_view body_of(const std::string& out, char tag) {
    const auto found = scan_frame(out);
    RC_ASSERT(found.status == scan_status::complete);
    RC_ASSERT(found.header.tag == tag);
    RC_ASSERT(found.header.total_size() == out.size());
    return found.body;
}

std::vector<std::optional<std::string>> some_values() {
    using value = std::optional<std::string>;
    const auto any =
        rc::gen::exec([] { return *rc::gen::arbitrary<bool>() ? value(bytes()) : value(); });
    return *rc::gen::container<std::vector<value>>(any);
}

}  // namespace

TEST_CASE("round trips") {
    rc::prop("query", [] {
        const auto sql = text();
        std::string out;
        append_query(out, sql);
        RC_ASSERT(decode_query(body_of(out, 'Q')).value() == sql);
    });
    rc::prop("parse", [] {
        const auto name = text();
        const auto sql = text();
        const auto types = *rc::gen::arbitrary<std::vector<std::uint32_t>>();
        std::string out;
        append_parse(out, name, sql, types);
        const auto message = decode_parse(body_of(out, 'P')).value();
        RC_ASSERT(message.statement == name);
        RC_ASSERT(message.query == sql);
        RC_ASSERT(message.parameter_types == types);
    });
    rc::prop("execute and describe", [] {
        const auto name = text();
        const auto limit = *rc::gen::arbitrary<std::int32_t>();
        std::string out;
        append_execute(out, name, limit);
        const auto execute = decode_execute(body_of(out, 'E')).value();
        RC_ASSERT(execute.portal == name);
        RC_ASSERT(execute.row_limit == limit);
        out.clear();
        append_target(out, 'D', 'P', name);
        RC_ASSERT(decode_target(body_of(out, 'D')).value().name == name);
    });
    rc::prop("data row", [] {
        const auto values = some_values();
        std::vector<std::optional<std::string_view>> views(values.begin(), values.end());
        std::string out;
        append_data_row(out, views);
        RC_ASSERT(decode_data_row(body_of(out, 'D')).value() == views);
    });
    rc::prop("error", [] {
        const error_fields fields{.severity = text(),
                                  .sqlstate = text(),
                                  .message = text(),
                                  .detail = text(),
                                  .hint = text()};
        std::string out;
        append_error(out, fields);
        const auto read = decode_error(body_of(out, 'E')).value();
        RC_ASSERT(read.severity == fields.severity);
        RC_ASSERT(read.severity_raw == fields.severity);
        RC_ASSERT(read.sqlstate == fields.sqlstate);
        RC_ASSERT(read.message == fields.message);
        RC_ASSERT(read.detail == fields.detail);
        RC_ASSERT(read.hint == fields.hint);
    });
    rc::prop("startup", [] {
        std::vector<std::pair<std::string, std::string>> parameters;
        for (auto name : *rc::gen::container<std::vector<std::string>>(rc::gen::exec(text)))
            if (!name.empty()) parameters.emplace_back(name, text());
        std::string out;
        append_startup(out, parameters);
        RC_PRE(out.size() <= startup_size_max);
        const auto found = scan_startup(out);
        RC_ASSERT(found.status == scan_status::complete);
        const auto packet = decode_first_packet(found.body).value();
        const auto& startup = std::get<startup_message>(packet);
        RC_ASSERT(startup.parameters.size() == parameters.size());
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            RC_ASSERT(startup.parameters[i].first == parameters[i].first);
            RC_ASSERT(startup.parameters[i].second == parameters[i].second);
        }
    });
}

TEST_CASE("decoders are total") {
    rc::prop("any bytes give a value inside them or an error", [] {
        const auto body = bytes();
        const auto inside = [&](std::string_view part) {
            return part.empty() || (part.data() >= body.data() &&
                                    part.data() + part.size() <= body.data() + body.size());
        };
        if (const auto m = decode_query(body)) RC_ASSERT(inside(*m));
        if (const auto m = decode_parse(body)) RC_ASSERT(inside(m->query) && inside(m->statement));
        if (const auto m = decode_bind_head(body)) RC_ASSERT(inside(m->rest));
        if (const auto m = decode_data_row(body))
            for (const auto& v : *m)
                if (v) RC_ASSERT(inside(*v));
        if (const auto m = decode_row_description(body))
            for (const auto& c : *m)
                RC_ASSERT(inside(c.name));
        (void)decode_first_packet(body);
        (void)decode_bind(body);
        (void)decode_target(body);
        (void)decode_execute(body);
        (void)decode_error(body);
        (void)decode_backend_key(body);
        (void)decode_authentication(body);
        (void)decode_parameter_description(body);
    });
    rc::prop("a reader never passes its end and stays failed", [] {
        const auto body = bytes();
        reader in(body);
        bool failed = false;
        for (const auto step : *rc::gen::arbitrary<std::vector<std::uint8_t>>()) {
            const auto before = in.rest().size();
            switch (step % 5) {
                case 0:
                    in.u8();
                    break;
                case 1:
                    in.u16();
                    break;
                case 2:
                    in.u32();
                    break;
                case 3:
                    in.cstring();
                    break;
                default:
                    in.bytes(step);
                    break;
            }
            RC_ASSERT(in.rest().size() <= before);
            if (failed) RC_ASSERT(!in.ok());
            failed = failed || !in.ok();
        }
    });
}

TEST_CASE("framing does not depend on how the bytes arrive") {
    rc::prop("any split of any messages", [] {
        std::string stream;
        std::vector<std::string> bodies = *rc::gen::arbitrary<std::vector<std::string>>();
        for (const auto& body : bodies)
            append_bytes(stream, 'd', body);
        std::string buffer;
        std::size_t at = 0;
        std::size_t found = 0;
        while (at < stream.size()) {
            const auto size = *rc::gen::inRange<std::size_t>(1, 20);
            buffer += stream.substr(at, size);
            at += std::min(size, stream.size() - at);
            for (auto next = scan_frame(buffer); next.status == scan_status::complete;
                 next = scan_frame(buffer)) {
                RC_ASSERT(found < bodies.size());
                RC_ASSERT(next.body == bodies[found++]);
                buffer.erase(0, next.header.total_size());
            }
        }
        RC_ASSERT(found == bodies.size());
        RC_ASSERT(buffer.empty());
    });
}
