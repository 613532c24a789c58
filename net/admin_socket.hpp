// The server's local door for consoles: a UNIX socket that speaks the line protocol, on a thread of
// its own. Only the user who runs the server may open it.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "actors/service.hpp"
#include "net/console_source.hpp"

namespace net {

// $XDG_RUNTIME_DIR, or else a directory of this user's own in /tmp.
std::string admin_directory();
std::string default_admin_path(uint16_t port);  // .../sluice-PORT.sock

class AdminSocket {
 public:
  // Listens at once. Throws std::runtime_error naming the path: another server answers there, it is
  // no socket, or the directory is not this user's alone.
  AdminSocket(const std::string& path, actors::Service& service);
  ~AdminSocket();  // ends what is under way and removes the socket
  AdminSocket(const AdminSocket&) = delete;
  AdminSocket& operator=(const AdminSocket&) = delete;

  const std::string& path() const { return path_; }

 private:
  struct Client {
    int fd = -1;
    std::string input;
  };
  void run();
  void accept_client();
  bool serve(Client& client);  // false: it left, or sends nonsense without end

  std::string path_;
  std::unique_ptr<ConsoleSource> source_;
  int listener_ = -1, wake_read_ = -1, wake_write_ = -1;
  std::list<Client> clients_;
  std::thread thread_;
};

}  // namespace net
