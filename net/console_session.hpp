// One console at work: runs commands against its client and prints their answers.
#pragma once

#include <string>
#include <vector>

#include "net/console_client.hpp"

namespace net {

class ConsoleSession {
 public:
  ConsoleSession(ConsoleClient& client, bool json) : client_(client), json_(json) {}

  // As run_console() says. Answers go to stdout, complaints to stderr.
  int run(const std::vector<std::string>& words);
  bool over() const { return over_; }  // "quit" was said
  ConsoleClient& client() { return client_; }

 private:
  int help(const boost::json::object& command);
  int save(const boost::json::object& command);
  int complain(const kernels::Error& error, int code);

  ConsoleClient& client_;
  bool json_;
  bool over_ = false;
};

}  // namespace net
