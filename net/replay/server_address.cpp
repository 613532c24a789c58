#include "net/replay/server_address.hpp"

#include <algorithm>
#include <stdexcept>

namespace net {
namespace {

[[noreturn]] void refuse(std::string_view url, const std::string& problem) {
  throw std::invalid_argument("url: \"" + std::string(url) + "\" " + problem +
                              "; expected http://HOST:PORT, like http://127.0.0.1:30000");
}

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         std::stoi(std::string(text)) <= 65535;
}

std::string prefix_of(std::string_view path) {
  const auto cut = [&](std::string_view ending) {
    if (path.size() >= ending.size() && path.substr(path.size() - ending.size()) == ending)
      path.remove_suffix(ending.size());
  };
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  cut("/v1");
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  return std::string(path);
}

}  // namespace

std::string ServerAddress::host_field() const {
  const std::string name = host.find(':') == host.npos ? host : "[" + host + "]";
  return port == "80" ? name : name + ":" + port;
}

std::string ServerAddress::url() const { return "http://" + host_field() + prefix; }

ServerAddress parse_address(std::string_view url) {
  std::string_view rest = url;
  if (const size_t scheme = rest.find("://"); scheme != rest.npos) {
    if (rest.substr(0, scheme) != "http")
      refuse(url, "is not plain HTTP, which is all that is spoken here");
    rest.remove_prefix(scheme + 3);
  }
  ServerAddress address;
  const size_t path = std::min(rest.find('/'), rest.size());
  address.prefix = prefix_of(rest.substr(path));
  rest = rest.substr(0, path);
  std::string_view host = rest, port;
  bool has_port = false;
  if (!rest.empty() && rest.front() == '[') {  // an IPv6 address
    const size_t end = rest.find(']');
    if (end == rest.npos) refuse(url, "opens a bracket and does not close it");
    host = rest.substr(1, end - 1);
    rest = rest.substr(end + 1);
    has_port = !rest.empty() && rest.front() == ':';
    if (!rest.empty() && !has_port) refuse(url, "has more than a port behind the bracket");
    port = has_port ? rest.substr(1) : rest;
  } else if (const size_t colon = rest.rfind(':'); colon != rest.npos) {
    has_port = true;
    host = rest.substr(0, colon);
    port = rest.substr(colon + 1);
  }
  if (host.empty()) refuse(url, "names no host");
  if (has_port && !is_port(port)) refuse(url, "has no port behind the colon");
  address.host = std::string(host);
  if (has_port) address.port = std::string(port);
  return address;
}

}  // namespace net
