// A running server that a trace is played against: where it is, and what it is asked for.
#pragma once

#include <cstdint>
#include <string>

namespace net {

struct LiveServer {
  std::string url;      // http://HOST:PORT; empty: there is none
  std::string api_key;  // empty: none is sent
  std::string model;    // empty: the first that the server names
  // Prompts that a trace knows by blocks alone are sent as token ids below `vocabulary`; 0: as
  // large as the server says. With `text` they are words, with `chat` the words are a message.
  uint32_t vocabulary = 0;
  bool text = false, chat = false;
  bool ignore_eos = true;  // answers are as long as the recorded ones; not every server knows it
  uint32_t retries = 20;   // of a request that is told to come again later
  double silence_s = 600;  // a server that says nothing for so long has failed
};

}  // namespace net
