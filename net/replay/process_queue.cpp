#include "net/replay/process_queue.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <stdexcept>

#include "kernels/base/verify.hpp"

namespace net {
namespace {

// In the child: does not come back. Only calls that are safe after a fork.
[[noreturn]] void become(char* const* words, const char* log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before it was heard
  const int nothing = open("/dev/null", O_RDWR);
  const int written = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (nothing < 0 || written < 0) _exit(127);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  dup2(written, STDERR_FILENO);
  execv(words[0], words);
  _exit(127);
}

pid_t start(const ProcessCommand& command) {
  std::vector<std::string> words = command.words;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become(pointers.data(), command.log.c_str(), parent);
  if (child < 0) {
    throw std::runtime_error(command.words.front() + ": cannot be started (" +
                             std::strerror(errno) + ")");
  }
  return child;
}

}  // namespace

void run_processes(const std::vector<ProcessCommand>& commands, size_t at_once,
                   const std::function<void(size_t, bool)>& ended) {
  VERIFY(at_once > 0);
  std::map<pid_t, size_t> running;
  size_t next = 0;
  while (next < commands.size() || !running.empty()) {
    if (next < commands.size() && running.size() < at_once) {
      running.emplace(start(commands[next]), next);
      ++next;
      continue;
    }
    int status = 0;
    const pid_t child = waitpid(-1, &status, 0);
    if (child < 0) {
      VERIFY(errno == EINTR);
      continue;
    }
    const auto found = running.find(child);
    if (found == running.end()) continue;
    const size_t index = found->second;
    running.erase(found);
    ended(index, WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

}  // namespace net
