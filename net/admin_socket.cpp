#include "net/admin_socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "net/admin_protocol.hpp"
#include "net/unix_socket.hpp"

namespace net {
namespace {

constexpr size_t kClientsMax = 16;  // consoles at once
constexpr timeval kSendTime{5, 0};  // for a console to take its answer

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw std::runtime_error("admin_socket: " + path + ": " + why);
}

sockaddr_un address_of(const std::string& path) {
  const auto address = unix_address(path);
  if (!address)
    fail(path, "longer than the " + std::to_string(sizeof address->sun_path - 1) +
                   " bytes that a socket's path may have");
  return *address;
}

// Something lies at the path: a dead server's socket is removed.
void clear_path(const std::string& path, const sockaddr_un& address) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return;
  if (!S_ISSOCK(status.st_mode)) fail(path, "is there already, and is no socket");
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool alive =
      ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(probe);
  if (alive) fail(path, "another server listens there");
  ::unlink(path.c_str());
}

// Where there is no XDG_RUNTIME_DIR.
std::string own_directory() { return "/tmp/sluice-" + std::to_string(::getuid()); }

}  // namespace

std::string admin_directory() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime != '\0') return runtime;
  return own_directory();
}

std::string default_admin_path(uint16_t port) {
  return admin_directory() + "/sluice-" + std::to_string(port) + ".sock";
}

AdminSocket::AdminSocket(const std::string& path, actors::Service& service)
    : path_(path), source_(make_live_source(service)) {
  const sockaddr_un address = address_of(path);
  const std::string own = own_directory();
  if (path.rfind(own + "/", 0) == 0) {
    ::mkdir(own.c_str(), 0700);
    struct stat status{};
    if (::lstat(own.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != ::getuid() || (status.st_mode & 077) != 0)
      fail(own, "must be a directory that only this user can enter (mode 0700)");
  }
  clear_path(path, address);
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  ::fchmod(listener_, 0600);  // before bind(): the path never has another mode
  int wake[2];
  if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_, 8) != 0 || ::pipe2(wake, O_CLOEXEC) != 0) {
    const std::string why = std::strerror(errno);
    ::close(listener_);
    fail(path, why);
  }
  wake_read_ = wake[0];
  wake_write_ = wake[1];
  thread_ = std::thread([this] { run(); });
}

AdminSocket::~AdminSocket() {
  ::close(wake_write_);
  thread_.join();
  for (const Client& client : clients_) ::close(client.fd);
  ::close(wake_read_);
  ::close(listener_);
  ::unlink(path_.c_str());
}

void AdminSocket::run() {
  for (;;) {
    std::vector<pollfd> waits{{wake_read_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Client& client : clients_) waits.push_back({client.fd, POLLIN, 0});
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;
    if (waits[0].revents != 0) return;
    size_t at = 2;
    for (auto client = clients_.begin(); client != clients_.end(); ++at) {
      if (waits[at].revents == 0 || serve(*client)) {
        ++client;
        continue;
      }
      ::close(client->fd);
      client = clients_.erase(client);
    }
    if (waits[1].revents != 0) accept_client();
  }
}

void AdminSocket::accept_client() {
  const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kSendTime, sizeof kSendTime);
  if (clients_.size() == kClientsMax) {
    const kernels::Error full{kernels::ErrorCode::kFull, "too many consoles are connected", {}};
    send_all(fd, admin_error(full).line + "\n");
    ::close(fd);
    return;
  }
  clients_.push_back({fd, {}});
}

bool AdminSocket::serve(Client& client) {
  char bytes[4096];
  const ssize_t got = ::recv(client.fd, bytes, sizeof bytes, MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  client.input.append(bytes, static_cast<size_t>(got));
  for (size_t end; (end = client.input.find('\n')) != std::string::npos;) {
    std::string line = client.input.substr(0, end);
    client.input.erase(0, end + 1);
    if (line.empty()) continue;
    std::string answer;
    try {
      answer = answer_admin_line(line, *source_).line;
    } catch (const std::exception& failure) {  // out of memory for a huge answer
      answer = admin_error({kernels::ErrorCode::kInternal, failure.what(), {}}).line;
    }
    if (!send_all(client.fd, answer + "\n")) return false;
  }
  if (client.input.size() <= kAdminLineMax) return true;
  send_all(client.fd, admin_error(kernels::invalid("the line is longer than " +
                                                   std::to_string(kAdminLineMax) + " bytes"))
                              .line +
                          "\n");
  return false;
}

}  // namespace net
