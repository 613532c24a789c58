// Signals while the model loads.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <string>

TEST_CASE("A signal during loading ends the server with 0 at once", "[e2e]") {
  const int signal = GENERATE(SIGTERM, SIGINT);
  const auto folder = std::filesystem::temp_directory_path() /
                      ("sluice-load-" + std::to_string(::getpid()) + "-" + std::to_string(signal));
  std::filesystem::create_directories(folder);
  const std::string fifo = folder / "config.json";  // a load that waits for its first byte
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const std::string program = std::string(SLUICE_BIN_DIR) + "/sluice-serve";
  const std::string model = folder;
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(program.c_str(), program.c_str(), "--device", "null", "--port", "0", "--model",
            model.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0, writer = -1;
  while (writer < 0 && ::waitpid(child, &status, WNOHANG) == 0) {  // until the loader has opened it
    writer = ::open(fifo.c_str(), O_WRONLY | O_NONBLOCK);
    ::sched_yield();
  }
  REQUIRE(writer >= 0);
  const auto asked = std::chrono::steady_clock::now();
  ::kill(child, signal);
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(std::chrono::steady_clock::now() - asked < std::chrono::seconds(10));
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  ::close(writer);
  std::filesystem::remove_all(folder);
}
