// One console at work: runs commands against its client and prints their answers.
#pragma once

#include <string>
#include <vector>

#include "net/console_client.hpp"

namespace net {

// Tells what is wrong, as text or JSON, and returns the exit code.
int complain(const kernels::Error& error, int code, bool json);
// The answer to "help", which needs no server; the exit code.
int show_help(const boost::json::object& command, bool json);

class ConsoleSession {
 public:
  ConsoleSession(ConsoleClient& client, bool json) : client_(client), json_(json) {}

  // As run_console() says. Answers go to stdout, complaints to stderr.
  int run(const std::vector<std::string>& words);
  bool over() const { return over_; }  // "quit" was said
  ConsoleClient& client() { return client_; }

 private:
  int save(const boost::json::object& command);

  ConsoleClient& client_;
  bool json_;
  bool over_ = false;
};

}  // namespace net
