// Reading requests: what is accepted, what is refused, and that a connection survives what it can.
#include "tests/net/http_fixture.hpp"

using support::completion;
using support::get;
using support::post;
using support::Running;
using support::WireClient;
using support::WireReply;

namespace {

struct Malformed {
  const char* what;
  std::string bytes;
  int status;
  const char* message;  // part of the error's message
};

void check_error(const WireReply& reply, int status, const std::string& message) {
  CHECK(reply.status == status);
  CHECK(reply.header("Content-Type") == "application/json");
  CHECK_THAT(reply.body, Catch::StartsWith(R"({"error":{"message":)"));
  CHECK_THAT(reply.body, Catch::Contains(message));
}

}  // namespace

TEST_CASE("a malformed request is answered with its own error and the server goes on", "[net]") {
  auto config = support::quick_config();
  config.limits.body_bytes = 1000;
  config.limits.header_bytes = 2048;
  Running running(config);
  const std::string host = "Host: x\r\n";
  const std::string too_long(4096, 'a');
  const std::string chunked =
      "POST /tokenize HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n";
  std::string crumbs;  // 700 bytes in 4200
  for (int i = 0; i < 700; ++i) crumbs += "1\r\nx\r\n";
  const std::vector<Malformed> cases = {
      {"no version", "GET /health\r\n\r\n", 400, "malformed HTTP request"},
      {"unknown version", "GET /health HTTP/3.0\r\n" + host + "\r\n", 400,
       "malformed HTTP request"},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "malformed HTTP request"},
      {"bad method", "G@T /health HTTP/1.1\r\n" + host + "\r\n", 400, "malformed HTTP request"},
      {"space in target", "GET /a b HTTP/1.1\r\n" + host + "\r\n", 400, "malformed HTTP request"},
      {"relative target", "GET health HTTP/1.1\r\n" + host + "\r\n", 400, "target"},
      {"binary", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", 13), 400,
       "malformed HTTP request"},
      {"bare line feeds", "GET /health HTTP/1.1\nHost: x\n\n", 400, "malformed HTTP request"},
      {"field without colon", "GET /health HTTP/1.1\r\n" + host + "nonsense\r\n\r\n", 400,
       "malformed HTTP request"},
      {"space before colon", "GET /health HTTP/1.1\r\nHost : x\r\n\r\n", 400,
       "malformed HTTP request"},
      {"control character in a value", "GET /health HTTP/1.1\r\n" + host + "A: b\x01\r\n\r\n", 400,
       "malformed"},
      {"no Host", "GET /health HTTP/1.1\r\n\r\n", 400, "Host"},
      {"two Hosts", "GET /health HTTP/1.1\r\n" + host + host + "\r\n", 400, "Host"},
      {"negative length", "POST /tokenize HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n", 400,
       "malformed"},
      {"length not a number", "POST /tokenize HTTP/1.1\r\n" + host + "Content-Length: ten\r\n\r\n",
       400, "malformed"},
      {"two lengths",
       "POST /tokenize HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400,
       "malformed"},
      {"length with coding",
       "POST /tokenize HTTP/1.1\r\n" + host +
           "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400, "malformed"},
      {"coding with length",
       "POST /tokenize HTTP/1.1\r\n" + host +
           "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
       400, "malformed"},
      {"unknown coding", "POST /tokenize HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\n\r\n",
       400, "Transfer-Encoding"},
      {"chunked not last",
       "POST /tokenize HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked, gzip\r\n\r\n", 400,
       "Transfer-Encoding"},
      {"chunked in HTTP/1.0",
       "POST /tokenize HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
       "Transfer-Encoding"},
      {"chunk size not hexadecimal",
       "POST /tokenize HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400,
       "malformed"},
      {"chunk longer than its size",
       "POST /tokenize HTTP/1.1\r\n" + host +
           "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
       400, "malformed"},
      {"declared body over the limit",
       "POST /tokenize HTTP/1.1\r\n" + host + "Content-Length: 1001\r\n\r\n", 413, "1000 bytes"},
      {"absurd length",
       "POST /tokenize HTTP/1.1\r\n" + host + "Content-Length: 18446744073709551615\r\n\r\n", 413,
       "1000 bytes"},
      {"length beyond 64 bits",
       "POST /tokenize HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999999999\r\n\r\n",
       400, "malformed"},
      {"chunks over the limit",
       "POST /tokenize HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n400\r\n" +
           std::string(1024, 'x') + "\r\n",
       413, "1000 bytes"},
      {"header field over the limit",
       "GET /health HTTP/1.1\r\n" + host + "A: " + too_long + "\r\n\r\n", 431, "2048 bytes"},
      {"header that never ends", "GET /health HTTP/1.1\r\n" + host + "A: " + too_long, 431,
       "2048 bytes"},
      {"target over the limit", "GET /" + too_long + " HTTP/1.1\r\n" + host + "\r\n", 431,
       "2048 bytes"},
      {"chunk extension that never ends", chunked + "1;" + too_long, 400, "a chunk's size line"},
      {"second chunk extension that never ends", chunked + "1\r\nx\r\n1;" + too_long, 400,
       "a chunk's size line"},
      {"trailer field that never ends", chunked + "0\r\nA: " + too_long, 431, "trailer fields"},
      {"trailers that never end", chunked + "1\r\nx\r\n0\r\nA: 1\r\nB: " + too_long, 431,
       "trailer fields"},
      {"more framing than body", chunked + crumbs, 413, "chunk framing"},
      {"compressed body", post("/tokenize", "xx", "Content-Encoding: gzip\r\n"), 415,
       "Content-Encoding"},
      {"unknown expectation", post("/tokenize", "xx", "Expect: miracles\r\n"), 417, "Expect"},
  };
  for (const auto& bad : cases) {
    CAPTURE(bad.what);
    WireClient client(running.port());
    client.send(bad.bytes);
    check_error(client.read_reply(), bad.status, bad.message);
    client.shut_down_sending();
    CHECK(client.at_end());  // after a framing error nothing that follows can be trusted
  }
  CHECK(WireClient(running.port()).ask(get("/health")).status == 200);
}

TEST_CASE("many small header fields are bounded like a large one", "[net]") {
  auto config = support::quick_config();
  config.limits.header_bytes = 2048;
  Running running(config);
  WireClient client(running.port());
  std::string request = "GET /health HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 200; ++i) request += "X-Field-" + std::to_string(i) + ": 0123456789\r\n";
  check_error(client.ask(request + "\r\n"), 431, "2048 bytes");
}

TEST_CASE(
    "a body over the limit is refused before it is sent, and the refusal survives a client that "
    "sends it anyway",
    "[net]") {
  auto config = support::quick_config();
  config.limits.body_bytes = 1 << 20;
  Running running(config);
  WireClient client(running.port());
  client.send(post("/v1/chat/completions",
                   std::string(8 << 20, 'x')));  // far more than the socket buffers hold
  check_error(client.read_reply(), 413, "larger than the limit");
}

TEST_CASE("a connection serves one request after another, also when they come at once or in pieces",
          "[net]") {
  Running running;
  WireClient client(running.port());
  for (int i = 0; i < 3; ++i) {
    const WireReply reply = client.ask(get("/health"));
    CHECK(reply.status == 200);
    CHECK(reply.header("Connection") == "keep-alive");
  }
  client.send(get("/health") + get("/nowhere") + "\r\n" +
              get("/v1/models"));  // pipelined, with a stray empty line
  CHECK(client.read_reply().status == 200);
  CHECK(client.read_reply().status == 404);
  CHECK_THAT(client.read_reply().body, Catch::Contains("tiny"));
  for (const char byte : get("/health")) client.send(std::string_view(&byte, 1));
  CHECK(client.read_reply().status == 200);
}

TEST_CASE("requests pipelined behind a generation are answered after it, in order", "[net]") {
  Running running;
  WireClient client(running.port());
  client.send(completion(true) + get("/health") + get("/v1/models"));
  const auto request = running.service.next();
  for (auto& event : support::whole_answer({"one"})) CHECK(request.sink(event));
  CHECK_THAT(client.read_reply().body, Catch::EndsWith("data: [DONE]\n\n"));
  CHECK_THAT(client.read_reply().body, Catch::Contains("ok"));
  CHECK_THAT(client.read_reply().body, Catch::Contains("tiny"));
}

TEST_CASE("a body may come in chunks, in pieces, or after 100 Continue", "[net]") {
  Running running;
  running.service.answer_at_once(support::whole_answer({"hello"}));
  const std::string body = R"({"prompt":[1,2],"max_tokens":3})";
  WireClient client(running.port());
  const std::string head = "POST /v1/completions HTTP/1.1\r\nHost: x\r\n";

  client.send(head + "Transfer-Encoding: chunked\r\n\r\n5;note=1\r\n" + body.substr(0, 5) + "\r\n");
  client.send("1a\r\n" + body.substr(5) + "\r\n0\r\nTrailer: 1\r\n\r\n");
  CHECK_THAT(client.read_reply().body, Catch::Contains("hello"));

  client.send(head + "Content-Length: " + std::to_string(body.size()) +
              "\r\nExpect: 100-continue\r\n\r\n");
  CHECK(client.read_head().status == 100);
  client.send(body);
  CHECK_THAT(client.read_reply().body, Catch::Contains("hello"));

  client.send(
      "POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n");
  CHECK(client.read_reply().status == 404);  // refused before the body was asked for
}

TEST_CASE("HTTP/1.0 and Connection: close end with the answer", "[net]") {
  Running running;
  running.service.answer_at_once(support::whole_answer({"a", "b"}));
  WireClient old(running.port());
  old.send("GET /health HTTP/1.0\r\n\r\n");
  CHECK(old.read_reply().header("Connection") == "close");
  CHECK(old.at_end());

  WireClient closing(running.port());
  closing.send(completion(true, "Connection: close\r\n"));
  CHECK_THAT(closing.read_reply().body, Catch::EndsWith("data: [DONE]\n\n"));
  CHECK(closing.at_end());

  WireClient old_stream(running.port());
  const std::string body = R"({"prompt":[1],"stream":true})";
  old_stream.send("POST /v1/completions HTTP/1.0\r\nContent-Length: " +
                  std::to_string(body.size()) + "\r\n\r\n" + body);
  const WireReply reply = old_stream.read_reply();  // no chunks: the close ends it
  CHECK(reply.header("Transfer-Encoding").empty());
  CHECK_THAT(reply.body, Catch::StartsWith("data: {") && Catch::EndsWith("data: [DONE]\n\n"));
}

TEST_CASE("a slow header or body ends in 408, an idle connection just ends", "[net]") {
  auto config = support::quick_config();
  config.limits.header_timeout = std::chrono::milliseconds(60);
  config.limits.body_timeout = std::chrono::milliseconds(60);
  config.limits.idle_timeout = std::chrono::milliseconds(120);
  Running running(config);

  WireClient header(running.port());
  header.send("GET /health HTTP/1.1\r\nHo");
  check_error(header.read_reply(), 408, "header took longer than 60 ms");
  WireClient body(running.port());
  body.send("POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{");
  check_error(body.read_reply(), 408, "body took longer than 60 ms");
  WireClient silent(running.port());
  CHECK(silent.at_end());
  WireClient idle(running.port());
  CHECK(idle.ask(get("/health")).status == 200);
  CHECK(idle.at_end());
}

TEST_CASE("a client that leaves within a request costs nothing but the connection", "[net]") {
  Running running;
  for (const auto& part :
       {std::string(), std::string("GET /hea"), completion().substr(0, 100), std::string("\r\n")}) {
    WireClient client(running.port());
    client.send(part);
    client.shut_down_sending();
    CHECK(client.at_end());
  }
  CHECK(WireClient(running.port()).ask(get("/health")).status == 200);
}

TEST_CASE("connections over the limit are told so", "[net]") {
  auto config = support::quick_config();
  config.limits.connections = 2;
  Running running(config);
  WireClient first(running.port()), second(running.port());
  CHECK(first.ask(get("/health")).status == 200);
  CHECK(second.ask(get("/health")).status == 200);
  WireClient third(running.port());
  const WireReply refused = third.read_reply();
  check_error(refused, 503, "too many open connections");
  CHECK(refused.header("Retry-After") == "1");
  CHECK(third.at_end());
  CHECK(first.ask(get("/health")).status == 200);
}
