#include "router/admin/client.hpp"

#include <optional>

#include <fmt/format.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace hotlane::admin {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using local = asio::local::stream_protocol;

constexpr std::uint64_t answer_bytes_max = 64 * 1024 * 1024;

// Runs what was started on `io` to its end, or gives up at the deadline.
struct exchange {
    asio::io_context io{1};
    beast::basic_stream<local, asio::io_context::executor_type> stream{io};
    std::optional<beast::error_code> result;

    auto note() {
        return [this](beast::error_code ec, auto...) { result = ec; };
    }
    beast::error_code finish() {
        io.restart();
        io.run();
        const auto ec = result.value_or(asio::error::timed_out);
        result.reset();
        return ec;
    }
};

unreachable explain(const std::string& path, beast::error_code ec) {
    if (ec == beast::errc::no_such_file_or_directory || ec == beast::errc::connection_refused)
        return {fmt::format("hotlane is not running (no one answers at {})", path)};
    if (ec == beast::errc::permission_denied)
        return {fmt::format("{}: permission denied; run as the user that runs hotlane", path)};
    if (ec == beast::error::timeout)
        return {fmt::format("{}: hotlane did not answer in time", path)};
    return {fmt::format("{}: {}", path, ec.message())};
}

}  // namespace

tl::expected<client_answer, unreachable> call(const std::string& socket_path,
                                              const std::string& method,
                                              const std::string& target,
                                              const nlohmann::json& body,
                                              std::chrono::milliseconds timeout) try {
    exchange with;
    with.stream.expires_after(timeout);
    with.stream.async_connect(local::endpoint(socket_path), with.note());
    if (auto ec = with.finish()) return tl::unexpected(explain(socket_path, ec));

    http::request<http::string_body> request;
    request.method_string(method);
    request.target(target);
    request.version(11);
    request.set(http::field::host, "hotlane");
    request.keep_alive(false);
    if (method == "POST") {
        request.set(http::field::content_type, "application/json");
        request.body() = body.dump();
    }
    request.prepare_payload();
    http::async_write(with.stream, request, with.note());
    // A refused body breaks the writing, and the reason is there to read.
    const auto write_error = with.finish();
    if (write_error == beast::error::timeout)
        return tl::unexpected(explain(socket_path, write_error));

    beast::flat_buffer buffer;
    http::response_parser<http::string_body> response;
    response.body_limit(answer_bytes_max);
    http::async_read(with.stream, buffer, response, with.note());
    if (auto ec = with.finish()) return tl::unexpected(explain(socket_path, ec));

    client_answer out;
    out.status = static_cast<int>(response.get().result_int());
    out.body = nlohmann::json::parse(response.get().body(), nullptr, false);
    if (out.body.is_discarded()) out.body = response.get().body();
    return out;
} catch (const boost::system::system_error& e) {  // a path too long for a socket
    return tl::unexpected(unreachable{fmt::format("{}: {}", socket_path, e.what())});
}

}  // namespace hotlane::admin
