#include "router/move/pgoutput.hpp"

#include <fmt/format.h>

namespace hotlane::move::pgoutput {
namespace {

using failure = tl::unexpected<std::string>;

// Reads big-endian numbers and strings. Once something is missing every later read gives nothing,
// and `bad` tells at the end.
class cursor {
  public:
    explicit cursor(std::string_view bytes) : rest_(bytes) {}

    template <typename Number>
    Number number() {
        if (rest_.size() < sizeof(Number)) {
            fail();
            return 0;
        }
        std::uint64_t out = 0;
        for (std::size_t i = 0; i < sizeof(Number); ++i)
            out = (out << 8U) | static_cast<unsigned char>(rest_[i]);
        rest_.remove_prefix(sizeof(Number));
        return static_cast<Number>(out);
    }

    char tag() { return static_cast<char>(number<std::uint8_t>()); }

    std::string_view bytes(std::size_t count) {
        if (rest_.size() < count) {
            fail();
            return {};
        }
        const auto out = rest_.substr(0, count);
        rest_.remove_prefix(count);
        return out;
    }

    std::string_view string() {
        const auto end = rest_.find('\0');
        if (end == std::string_view::npos) {
            fail();
            return {};
        }
        const auto out = rest_.substr(0, end);
        rest_.remove_prefix(end + 1);
        return out;
    }

    [[nodiscard]] bool bad() const { return bad_; }
    [[nodiscard]] std::size_t left() const { return rest_.size(); }
    void fail() {
        bad_ = true;
        rest_ = {};
    }

  private:
    std::string_view rest_;
    bool bad_{false};
};

tuple read_tuple(cursor& in) {
    tuple out;
    const auto count = in.number<std::uint16_t>();
    // A field has at least its kind: a count that promises more than there is allocates nothing.
    if (count > columns_max || count > in.left()) {
        in.fail();
        return out;
    }
    out.reserve(count);
    for (std::size_t i = 0; i < count && !in.bad(); ++i) {
        field f;
        switch (in.tag()) {
            case 'n':
                f.what = field::kind::null;
                break;
            case 'u':
                f.what = field::kind::unchanged;
                break;
            case 't':
                f.what = field::kind::text;
                f.bytes = in.bytes(in.number<std::uint32_t>());
                break;
            case 'b':
                f.what = field::kind::binary;
                f.bytes = in.bytes(in.number<std::uint32_t>());
                break;
            default:
                in.fail();  // a character, not one of our enums
        }
        out.push_back(f);
    }
    return out;
}

relation read_relation(cursor& in) {
    relation out;
    out.oid = in.number<std::uint32_t>();
    out.schema = std::string(in.string());
    out.name = std::string(in.string());
    out.identity = in.tag();
    const auto count = in.number<std::uint16_t>();
    if (count > columns_max || count > in.left()) {
        in.fail();
        return out;
    }
    for (std::size_t i = 0; i < count && !in.bad(); ++i) {
        relation_column c;
        c.in_identity = (in.number<std::uint8_t>() & 1U) != 0;
        c.name = std::string(in.string());
        c.type = in.number<std::uint32_t>();
        static_cast<void>(in.number<std::uint32_t>());  // type modifier
        out.columns.push_back(std::move(c));
    }
    return out;
}

change read_change(cursor& in, change::kind what) {
    change out;
    out.what = what;
    out.relation = in.number<std::uint32_t>();
    char which = in.tag();
    if (what != change::kind::inserted && (which == 'K' || which == 'O')) {
        out.before = read_tuple(in);
        if (what == change::kind::deleted) return out;
        which = in.tag();
    }
    if (what == change::kind::deleted || which != 'N') {
        in.fail();
        return out;
    }
    out.after = read_tuple(in);
    return out;
}

truncate read_truncate(cursor& in) {
    truncate out;
    const auto count = in.number<std::uint32_t>();
    static_cast<void>(in.number<std::uint8_t>());  // CASCADE, RESTART IDENTITY
    if (in.left() / sizeof(std::uint32_t) < count) {
        in.fail();
        return out;
    }
    for (std::uint32_t i = 0; i < count; ++i)
        out.relations.push_back(in.number<std::uint32_t>());
    return out;
}

message read_message(cursor& in) {
    message out;
    out.transactional = (in.number<std::uint8_t>() & 1U) != 0;
    static_cast<void>(in.number<std::uint64_t>());  // where it stands
    out.prefix = in.string();
    out.content = in.bytes(in.number<std::uint32_t>());
    return out;
}

event read_event(char tag, cursor& in) {
    switch (tag) {
        case 'B': {
            begin out;
            out.commit_lsn = in.number<std::uint64_t>();
            static_cast<void>(in.number<std::uint64_t>());  // when
            out.xid = in.number<std::uint32_t>();
            return out;
        }
        case 'C': {
            commit out;
            static_cast<void>(in.number<std::uint8_t>());  // flags, unused
            out.commit_lsn = in.number<std::uint64_t>();
            out.end_lsn = in.number<std::uint64_t>();
            static_cast<void>(in.number<std::uint64_t>());  // when
            return out;
        }
        case 'R':
            return read_relation(in);
        case 'I':
            return read_change(in, change::kind::inserted);
        case 'U':
            return read_change(in, change::kind::updated);
        case 'D':
            return read_change(in, change::kind::deleted);
        case 'T':
            return read_truncate(in);
        case 'M':
            return read_message(in);
        case 'O':
            static_cast<void>(in.number<std::uint64_t>());
            static_cast<void>(in.string());
            return aside{};
        case 'Y':
            static_cast<void>(in.number<std::uint32_t>());
            static_cast<void>(in.string());
            static_cast<void>(in.string());
            return aside{};
        default:
            in.fail();  // a character, not one of our enums
            return aside{};
    }
}

}  // namespace

tl::expected<event, std::string> decode(std::string_view bytes) {
    if (bytes.empty()) return failure("an empty message");
    const char tag = bytes.front();
    cursor in(bytes.substr(1));
    auto out = read_event(tag, in);
    if (in.bad())
        return failure(fmt::format("a message of kind {:#04x} that is not understood",
                                   static_cast<unsigned char>(tag)));
    if (in.left() > 0)
        return failure(fmt::format("{} bytes after a message of kind {}", in.left(), tag));
    return out;
}

}  // namespace hotlane::move::pgoutput
