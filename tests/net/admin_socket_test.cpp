// The admin socket and the /admin route: what a console, or anything else, may send there.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <boost/json/parse.hpp>
#include <cstring>
#include <filesystem>

#include "http_fixture.hpp"
#include "net/admin_protocol.hpp"
#include "net/admin_socket.hpp"
#include "tests/support/http_client.hpp"

namespace json = boost::json;

namespace {

std::string fresh_path() {
  static int count = 0;
  return (std::filesystem::temp_directory_path() /
          ("sluice-test-" + std::to_string(::getpid()) + "-" + std::to_string(++count) + ".sock"))
      .string();
}

class Line {
 public:
  explicit Line(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    REQUIRE(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    const timeval time{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  }
  ~Line() { ::close(fd_); }
  void send(const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t some = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (some <= 0) return;  // it closed: what it said is still to be read
      sent += static_cast<size_t>(some);
    }
  }
  std::string receive() {  // a line; "" at the end
    std::string line;
    for (char c = 0; ::recv(fd_, &c, 1, 0) == 1 && c != '\n';) line.push_back(c);
    return line;
  }
  std::string complaint(const std::string& sent) {
    send(sent + "\n");
    const json::value reply = json::parse(receive());
    CHECK_FALSE(reply.at("ok").as_bool());
    return reply.at("error").at("message").as_string().c_str();
  }

 private:
  int fd_;
};

}  // namespace

TEST_CASE("The admin socket answers lines, and says what is wrong with others", "[net][console]") {
  support::FakeService service;
  service.report.page_tokens = 64;
  const std::string path = fresh_path();
  net::AdminSocket socket(path, service);
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);

  Line line(path);
  line.send("{\"cmd\":\"stats\"}\n{\"cmd\":\"sl");
  CHECK(json::parse(line.receive()).at("result").at("page_tokens") == 64);
  line.send("ots\"}\n\n");
  CHECK(json::parse(line.receive()).at("result").at("slots").as_array().empty());

  CHECK(line.complaint("tree") == "the line is not valid JSON: syntax error");
  CHECK(line.complaint("[1]") == "the line must be a JSON object, {\"cmd\": ...}");
  CHECK(line.complaint("{}") == "cmd must name a command");
  CHECK(line.complaint("{\"cmd\":7}") == "cmd must be a string, got 7");
  CHECK(line.complaint("{\"cmd\":\"drop\"}") == "cmd: there is no command \"drop\"");
  CHECK(line.complaint("{\"cmd\":\"node\"}") == "node must name a node");
  CHECK(line.complaint("{\"cmd\":\"node\",\"node\":9}") == "there is no node 9");
  CHECK(line.complaint("{\"cmd\":\"node\",\"node\":-1}").find("node must be an integer") == 0);
  CHECK(line.complaint("{\"cmd\":\"why\",\"request\":\"chatcmpl-x\"}").find(
            "there is no request \"chatcmpl-x\"") == 0);
  CHECK(line.complaint("{\"cmd\":\"moves\",\"kind\":\"jump\"}").find("kind must be one of bind") ==
        0);
  CHECK(line.complaint("{\"cmd\":\"moves\",\"sequence\":\"a.b\"}").find("sequence must be") == 0);
  CHECK(line.complaint("{\"cmd\":\"\xff\"}") == "the line is not valid UTF-8");

  Line other(path);  // one that never ends its line loses its connection, the first stays
  other.send(std::string(net::kAdminLineMax + 5000, 'x'));
  CHECK(other.receive().find("the line is longer than 65536 bytes") != std::string::npos);
  line.send("{\"cmd\":\"pin\",\"node\":3}\n");
  CHECK(json::parse(line.receive()).at("result").at("pins") == 1);
}

TEST_CASE("An admin socket takes the place of a dead one, not of a living one", "[net][console]") {
  support::FakeService service;
  const std::string path = fresh_path();
  {
    const net::AdminSocket first(path, service);
    CHECK_THROWS_WITH(net::AdminSocket(path, service),
                      "admin_socket: " + path + ": another server listens there");
  }
  CHECK_FALSE(std::filesystem::exists(path));
  const int dead = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  REQUIRE(::bind(dead, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  ::close(dead);
  const net::AdminSocket second(path, service);
  Line line(path);
  line.send("{\"cmd\":\"requests\"}\n");
  CHECK(line.receive() == R"({"ok":true,"result":{"requests":[]}})");
  CHECK_THROWS_WITH(net::AdminSocket(SLUICE_SOURCE_DIR "/README.md", service),
                    Catch::Contains("is there already, and is no socket"));
  CHECK_THROWS_WITH(net::AdminSocket("/nonexistent/a.sock", service),
                    "admin_socket: /nonexistent/a.sock: No such file or directory");
}

TEST_CASE("The same commands go over HTTP, with the server's key", "[net][console]") {
  net::ServerConfig config = support::quick_config();
  config.api_key = "secret";
  support::Running running(config);
  support::HttpClient client(running.port());
  CHECK(client.request("POST", "/admin", R"({"cmd":"slots"})").status == 401);
  support::HttpClient again(running.port());
  const auto reply = again.request("POST", "/admin", R"({"cmd":"slots"})",
                                   "Authorization: Bearer secret\r\n");
  CHECK(reply.status == 200);
  CHECK(json::parse(reply.body).at("ok").as_bool());
  const auto unknown = again.request("POST", "/admin", R"({"cmd":"node","node":4})",
                                     "Authorization: Bearer secret\r\n");
  CHECK(unknown.status == 404);
  CHECK(json::parse(unknown.body).at("error").at("message") == "there is no node 4");
}
