#include "router/admin/connection.hpp"

#include <memory>
#include <optional>

#include <boost/asio/post.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <nlohmann/json.hpp>

namespace hotlane::admin {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using executor = asio::io_context::executor_type;

template <typename Protocol>
class connection final : public std::enable_shared_from_this<connection<Protocol>>, public waiting {
  public:
    connection(plain_socket<Protocol> socket, connection_context& shared, door by)
        : stream_(std::move(socket)), shared_(shared), by_(by) {}
    ~connection() { shared_.open.fetch_sub(1); }
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;

    void read() {
        parser_.emplace();
        parser_->header_limit(shared_.limit.header_bytes);
        parser_->body_limit(shared_.limit.body_bytes);
        stream_.expires_after(shared_.limit.idle_timeout);
        wait();
        http::async_read(stream_,
                         buffer_,
                         *parser_,
                         [self = this->shared_from_this()](beast::error_code ec, std::size_t) {
                             self->on_read(ec);
                         });
    }

    void cut() override {
        wait_no_more();
        stream_.close();
    }

  private:
    void wait() { place_ = shared_.idle.insert(shared_.idle.end(), this); }
    void wait_no_more() {
        if (place_ != shared_.idle.end()) shared_.idle.erase(place_);
        place_ = shared_.idle.end();
    }

    void on_read(beast::error_code ec) {
        wait_no_more();
        if (ec == http::error::body_limit || ec == http::error::header_limit)
            return refuse(http::status::payload_too_large);
        if (ec && ec.category() == http::make_error_code(http::error::bad_method).category() &&
            ec != http::error::end_of_stream && ec != http::error::partial_message)
            return refuse(http::status::bad_request);
        if (ec) return;  // closed, timed out
        stream_.expires_after(shared_.limit.handle_timeout);
        asio::post(shared_.workers, [self = this->shared_from_this()] { self->work(); });
    }

    void work() {  // on a worker
        const auto& request = parser_->get();
        auto answer = dispatch(by_,
                               std::string(request.method_string()),
                               std::string_view(request.target().data(), request.target().size()),
                               request.body(),
                               shared_.what);
        asio::post(stream_.get_executor(),
                   [self = this->shared_from_this(), got = std::move(answer)]() mutable {
                       self->write(std::move(got));
                   });
    }

    void write(http_answer answer) {
        const auto& request = parser_->get();
        response_ = {};
        response_.version(request.version());
        response_.result(static_cast<unsigned>(answer.status));
        response_.set(http::field::content_type, answer.content_type);
        response_.set(http::field::cache_control, "no-store");
        if (!answer.allow.empty()) response_.set(http::field::allow, answer.allow);
        response_.keep_alive(request.keep_alive());
        const auto length = answer.body.size();
        if (request.method() != http::verb::head) response_.body() = std::move(answer.body);
        response_.content_length(length);
        send();
    }

    void refuse(http::status status) {
        response_ = {};
        response_.version(11);
        response_.result(status);
        response_.set(http::field::content_type, "application/json");
        response_.keep_alive(false);
        const auto reason = http::obsolete_reason(status);
        response_.body() =
            nlohmann::json{{"error", std::string(reason)}, {"hint", ""}}.dump() + "\n";
        response_.prepare_payload();
        send();
    }

    void send() {
        stream_.expires_after(shared_.limit.idle_timeout);
        http::async_write(stream_,
                          response_,
                          [self = this->shared_from_this()](beast::error_code ec, std::size_t) {
                              if (ec) return;
                              if (self->response_.keep_alive()) return self->read();
                              beast::error_code ignored;
                              self->stream_.socket().shutdown(asio::socket_base::shutdown_send,
                                                              ignored);
                              self->linger();
                          });
    }

    // Reads on until the client closes: closing with bytes unread would reset the connection and
    // take the answer with it (a refused body is still on its way). Bounded by the idle time-out.
    void linger() {
        buffer_.clear();
        if (lingered_ > shared_.limit.body_bytes * linger_bodies) return;
        wait();
        stream_.async_read_some(
            buffer_.prepare(linger_step),
            [self = this->shared_from_this()](beast::error_code ec, std::size_t n) {
                self->wait_no_more();
                if (ec) return;
                self->lingered_ += n;
                self->linger();
            });
    }

    static constexpr std::size_t linger_step = 4096;
    static constexpr std::uint64_t linger_bodies = 16;

    beast::basic_stream<Protocol, executor> stream_;
    connection_context& shared_;
    door by_;
    beast::flat_buffer buffer_;
    std::optional<http::request_parser<http::string_body>> parser_;
    http::response<http::string_body> response_;
    std::uint64_t lingered_{0};
    std::list<waiting*>::iterator place_{shared_.idle.end()};
};

template <typename Protocol>
void begin(plain_socket<Protocol> socket, connection_context& shared, door by) {
    if (shared.open.fetch_add(1) >= shared.limit.connections) {
        shared.refused.fetch_add(1);
        if (shared.idle.empty()) {
            shared.open.fetch_sub(1);
            return;
        }
        shared.idle.front()->cut();
    }
    std::make_shared<connection<Protocol>>(std::move(socket), shared, by)->read();
}

}  // namespace

void begin_connection(plain_socket<asio::ip::tcp> socket, connection_context& shared, door by) {
    begin(std::move(socket), shared, by);
}

void begin_connection(plain_socket<asio::local::stream_protocol> socket,
                      connection_context& shared,
                      door by) {
    begin(std::move(socket), shared, by);
}

}  // namespace hotlane::admin
