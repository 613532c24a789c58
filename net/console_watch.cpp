#include "net/console_watch.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "net/console_render.hpp"

namespace net {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";  // the other screen, no cursor
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";

termios saved_terminal;  // of the process: a signal handler has nothing else

void put_back() {
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, kLeave, sizeof kLeave - 1);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &saved_terminal);
}

void on_signal(int number) {
  put_back();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

// The terminal in single keys on its other screen. Invariant: however it ends, by return or by a
// signal, the terminal is as it was.
class FullScreen {
 public:
  FullScreen() {
    ::tcgetattr(STDIN_FILENO, &saved_terminal);
    termios keys = saved_terminal;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);  // Ctrl-C is a key like q
    ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    for (size_t i = 0; i < 3; ++i) {
      struct sigaction action{};
      action.sa_handler = on_signal;
      ::sigaction(kSignals[i], &action, &before_[i]);
    }
    std::fputs(kEnter, stdout);
    std::fflush(stdout);
  }
  ~FullScreen() {
    put_back();
    for (size_t i = 0; i < 3; ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  static void size(size_t& rows, size_t& columns) {
    winsize window{};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 0;
    rows = known ? window.ws_row : 24;
    columns = known ? window.ws_col : 80;
  }
  static void draw(const std::vector<std::string>& lines) {
    std::string text = "\x1b[H";
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i > 0) text += "\r\n";
      text += lines[i] + "\x1b[K";
    }
    std::fputs((text + "\x1b[J").c_str(), stdout);
    std::fflush(stdout);
  }
  // True: the user wants to leave.
  static bool wait(milliseconds time) {
    pollfd key{STDIN_FILENO, POLLIN, 0};
    if (::poll(&key, 1, static_cast<int>(time.count())) <= 0) return false;
    char pressed = 0;
    return ::read(STDIN_FILENO, &pressed, 1) <= 0 || pressed == 'q' || pressed == 'Q' ||
           pressed == 3 || pressed == 4;
  }

 private:
  static constexpr int kSignals[3] = {SIGTERM, SIGHUP, SIGINT};
  struct sigaction before_[3] {};
};

void add_lines(std::vector<std::string>& lines, const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
}

kernels::Result<WatchFrame> ask_frame(ConsoleClient& client, uint64_t& last_next,
                                      Clock::time_point& last) {
  WatchFrame frame;
  const std::pair<const char*, json::object*> parts[] = {
      {"stats", &frame.stats}, {"pool", &frame.pool}, {"moves", &frame.moves}};
  for (const auto& [name, part] : parts) {
    auto answer = client.ask({{"cmd", name}});
    if (!answer) return answer.error();
    *part = std::move(*answer);
  }
  const auto next = frame.moves.at("next").to_number<uint64_t>();
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - last).count();
  if (last_next != 0 && seconds > 0)
    frame.moves_per_second = static_cast<double>(next - last_next) / seconds;
  last_next = next;
  last = now;
  return frame;
}

}  // namespace

std::vector<std::string> watch_lines(const std::string& whom, const WatchFrame& frame, size_t rows,
                                     size_t columns) {
  std::vector<std::string> lines;
  const json::value* const load = frame.stats.if_contains("load");
  std::string model;
  if (load != nullptr && load->is_object()) {
    const json::value* name = load->get_object().if_contains("model");
    if (name != nullptr && name->is_string())
      model = name->get_string().c_str();
  }
  lines.push_back("sluice " + model + "  " + whom + "  (q leaves)");
  add_lines(lines, render("stats", frame.stats));
  const size_t width = std::max<size_t>(columns, 12) - 2;
  const std::string bar = pool_bar(frame.pool, 3 * width);
  for (size_t row = 0; row < 3; ++row) {
    lines.emplace_back(1, '|');
    lines.back().append(bar, row * width, width).append(1, '|');
  }
  lines.emplace_back(kPoolLegend);
  char rate[48];
  std::snprintf(rate, sizeof rate, "latest moves (%.0f/s):", frame.moves_per_second);
  lines.emplace_back(rate);
  std::vector<std::string> moves;
  add_lines(moves, render("moves", frame.moves));
  if (!moves.empty()) moves.pop_back();  // the summary
  const size_t room = rows > lines.size() ? rows - lines.size() : 0;
  const size_t first = moves.size() > room ? moves.size() - room : 0;
  lines.insert(lines.end(), moves.begin() + static_cast<long>(first), moves.end());
  if (lines.size() > rows) lines.resize(rows);
  for (std::string& line : lines) line.resize(std::min(line.size(), columns));
  return lines;
}

int watch(ConsoleClient& client, const json::object& command, bool json_lines) {
  milliseconds every{1000};
  if (const json::value* wanted = command.if_contains("every"))
    every = milliseconds(std::clamp<int64_t>(wanted->to_number<int64_t>(), 100, 60'000));
  uint64_t last_next = 0;
  Clock::time_point last = Clock::now();
  const bool screen = ::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO) && !json_lines;
  std::unique_ptr<FullScreen> full;
  for (;;) {
    const auto frame = ask_frame(client, last_next, last);
    if (!frame) {
      full.reset();
      std::fprintf(stderr, "sluice-console: %s\n", frame.error().message.c_str());
      return 1;
    }
    if (screen) {
      if (!full) full = std::make_unique<FullScreen>();
      size_t rows = 0, columns = 0;
      FullScreen::size(rows, columns);
      FullScreen::draw(watch_lines(client.name(), *frame, rows, columns));
      if (FullScreen::wait(every)) return 0;
      continue;
    }
    if (json_lines) {
      const json::object both{{"stats", frame->stats}, {"moves_per_second", frame->moves_per_second}};
      std::printf("%s\n", json::serialize(both).c_str());
    } else {
      for (const std::string& line : watch_lines(client.name(), *frame, 24, 80))
        std::printf("%s\n", line.c_str());
    }
    if (std::fflush(stdout) != 0) return 0;
    ::poll(nullptr, 0, static_cast<int>(every.count()));
  }
}

}  // namespace net
