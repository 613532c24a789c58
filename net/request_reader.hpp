// Reads one HTTP/1.x request from a client, header first, so that a refusal needs no body. Every
// way in which a request can be malformed, late or too large ends as an answer here.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "net/client_socket.hpp"
#include "net/response.hpp"

namespace net {

class RequestReader {
 public:
  RequestReader(ClientSocket& socket, const HttpLimits& limits);

  // False: nobody to answer (closed, or idle too long) when refusal() is empty; else answer
  // refusal() and close.
  asio::awaitable<bool> read_header();
  // The rest: its body. Sends 100 Continue first if the client waits for it.
  asio::awaitable<bool> read_request();
  const std::optional<Response>& refusal() const { return refusal_; }

  // ---- valid after read_header() ----
  std::string_view method() const;
  std::string_view path() const;  // without query
  std::string_view header(boost::beast::http::field name) const;
  bool http11() const;
  bool keep_alive() const;
  bool has_unread_body() const { return !parser_.is_done(); }
  uint64_t read_ns() const { return read_ns_; }  // when the body was complete; 0: not traced
  std::string take_body() { return std::move(parser_.get().body()); }

 private:
  bool refuse(unsigned status, std::string message, std::string param = {});
  bool refuse(const boost::system::error_code& error);
  bool put(boost::system::error_code& error);  // parses what there is; false: an error, refused
  bool check_header();
  bool check_framing(size_t used);
  bool complete();  // true

  ClientSocket& socket_;
  const HttpLimits& limits_;
  boost::beast::http::request_parser<boost::beast::http::string_body> parser_;
  std::optional<Response> refusal_;
  size_t header_bytes_ = 0, body_bytes_ = 0;  // consumed so far, as sent
  uint64_t read_ns_ = 0;
  bool expects_continue_ = false;
};

}  // namespace net
