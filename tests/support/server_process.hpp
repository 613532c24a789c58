// A real sluice-serve in a process of its own, on a free port, for end-to-end tests.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace support {

class ServerProcess {
 public:
  // Starts the program and waits for its ready line. Arguments beside --port 0; throws if it ends
  // before it is ready.
  explicit ServerProcess(std::vector<std::string> arguments) {
    int out[2];
    if (::pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    started_ = std::chrono::steady_clock::now();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(out[1], STDOUT_FILENO);
      std::string program = std::string(SLUICE_BIN_DIR) + "/sluice-serve";
      std::vector<std::string> all = {program, "--port", "0"};
      all.insert(all.end(), arguments.begin(), arguments.end());
      std::vector<char*> argv;
      for (auto& argument : all) argv.push_back(argument.data());
      argv.push_back(nullptr);
      ::execv(program.c_str(), argv.data());
      ::_exit(127);
    }
    ::close(out[1]);
    std::FILE* lines = ::fdopen(out[0], "r");
    char line[512];
    while (port_ == 0 && std::fgets(line, sizeof line, lines) != nullptr) {
      const std::string text = line;
      const auto at = text.find("http://127.0.0.1:");
      if (text.find("is ready") != std::string::npos && at != std::string::npos) {
        port_ = static_cast<uint16_t>(std::stoi(text.substr(at + 17)));
      }
    }
    ready_after_ = std::chrono::steady_clock::now() - started_;
    std::fclose(lines);
    if (port_ == 0) {
      wait();
      throw std::runtime_error("sluice-serve ended before it was ready");
    }
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
  }

  uint16_t port() const { return port_; }
  pid_t pid() const { return pid_; }
  double ready_after_s() const { return std::chrono::duration<double>(ready_after_).count(); }
  void signal(int number) const { ::kill(pid_, number); }

  // Blocks until the process ends; its exit status, or -1 when a signal killed it.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  // Resident memory in KiB.
  long rss_kib() const {
    std::ifstream in("/proc/" + std::to_string(pid_) + "/statm");
    long size = 0, resident = 0;
    in >> size >> resident;
    return resident * (::sysconf(_SC_PAGESIZE) / 1024);
  }

 private:
  pid_t pid_ = -1;
  uint16_t port_ = 0;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::duration ready_after_{};
};

}  // namespace support
