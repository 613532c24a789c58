#include "net/replay/live_replay.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <map>
#include <string>
#include <utility>

#include "kernels/base/verify.hpp"
#include "net/replay/live_client.hpp"
#include "net/replay/progress_bar.hpp"
#include "net/replay/server_counters.hpp"

namespace net {

namespace json = boost::json;

namespace {

constexpr std::chrono::milliseconds kLookEvery{250};  // at the server's pools and the progress
constexpr size_t kErrorsMax = 32;                     // different ones that are told apart

double seconds(uint64_t ns) { return rounded(static_cast<double>(ns) * 1e-9); }

}  // namespace

struct LiveReplay::Impl {
  Impl(const Config& config_in, const HttpTarget& target_in, const Trace& trace_in,
       const std::vector<uint32_t>& sessions, const PromptSource& prompts_in,
       const LiveRequests& requests_in, std::ostream* progress, Listener listener_in)
      : config(config_in),
        target(target_in),
        trace(trace_in),
        prompts(prompts_in),
        requests(requests_in),
        listener(std::move(listener_in)),
        pacer(trace_in, config_in.pace, sessions),
        metrics(config_in.slo),
        client(target_in, config_in.retries, clock),
        bar(progress) {}

  void run();
  asio::awaitable<void> play_all();
  asio::awaitable<void> send_all();
  asio::awaitable<void> play_one(SessionPacer::Due due);
  asio::awaitable<void> look();
  asio::awaitable<ServerCounters> counters();
  void ended(const LivePlay& play);
  Progress progress() const;

  const Config config;
  const HttpTarget& target;
  const Trace& trace;
  const PromptSource& prompts;
  const LiveRequests& requests;
  const Listener listener;
  SessionPacer pacer;
  ReplayMetrics metrics;
  ReplayClock clock;
  LiveClient client;
  ProgressBar bar;
  TimeDistribution lag;  // from when a request was due to when it was sent
  std::map<std::string, uint64_t> errors;
  ServerCounters before, after;
  PeakUse peak;
  uint64_t open = 0, done = 0, failed = 0, retries = 0, tokens = 0;
  uint64_t end_ns = 0;  // of the last request
  bool is_over = false, interrupted = false;
  std::exception_ptr broken;
  // Last, so that coroutines it still holds die before what they use.
  asio::io_context loop{1};
  asio::steady_timer wake{loop};  // whoever decides what is sent next
  asio::steady_timer next_look{loop};
};

void LiveReplay::Impl::run() {
  asio::signal_set interrupt(loop, SIGINT);
  interrupt.async_wait([this](const boost::system::error_code& cancelled, int) {
    if (cancelled) return;
    interrupted = true;
    end_ns = clock.now_ns();
    loop.stop();
  });
  asio::co_spawn(loop, play_all(), [&](std::exception_ptr error) {
    broken = error;
    is_over = true;
    interrupt.cancel();
    next_look.cancel();
  });
  asio::co_spawn(loop, look(), asio::detached);
  loop.run();
  if (broken) std::rethrow_exception(broken);
  VERIFY(interrupted || (pacer.done() && open == 0));
}

asio::awaitable<void> LiveReplay::Impl::play_all() {
  if (config.is_sluice) before = co_await counters();
  clock = ReplayClock();
  co_await send_all();
  if (config.is_sluice) after = co_await counters();
}

// As the modelled replay: phases and requests when their time has come, and it sleeps until the
// next time that is known, or until an answer makes another known.
asio::awaitable<void> LiveReplay::Impl::send_all() {
  while (!pacer.done()) {
    const uint64_t now_ns = clock.now_ns();
    const auto due = pacer.next();
    const auto phase_ns = pacer.next_phase_ns();
    if (phase_ns && *phase_ns <= now_ns) {
      pacer.phase_begins(now_ns);
    } else if (due && due->at_ns <= now_ns) {
      pacer.sent();
      ++open;
      asio::co_spawn(loop, play_one(*due), asio::detached);
    } else {
      auto until = ReplayClock::TimePoint::max();
      if (due) until = clock.at(due->at_ns);
      if (phase_ns) until = std::min(until, clock.at(*phase_ns));
      wake.expires_at(until);
      boost::system::error_code woken;
      co_await wake.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    }
  }
}

asio::awaitable<void> LiveReplay::Impl::play_one(SessionPacer::Due due) {
  LivePlay play;
  const uint32_t request = due.play.request;
  const HttpAsk ask = requests.ask(request);
  play.record.play = due.play;
  play.record.prompt_tokens = prompts.prompt_tokens(request);  // as long as the server says nothing
  play.leaves_after = leaves_after(config.faults, due.play, prompts.output_tokens(request));
  play.record.sent_ns = clock.now_ns();
  lag.add(play.record.sent_ns - std::min(play.record.sent_ns, due.at_ns));
  if (config.faults.deadline_s > 0) {
    play.deadline_ns = play.record.sent_ns + static_cast<uint64_t>(config.faults.deadline_s * 1e9);
  }
  const LiveClient::Heard heard = [this](PlayRecord& record, uint64_t now_ns) {
    ++tokens;
    metrics.token(record, now_ns);
  };
  co_await client.play(ask, play, heard);
  ended(play);
}

void LiveReplay::Impl::ended(const LivePlay& play) {
  const uint64_t now_ns = clock.now_ns();
  --open;
  ++done;
  retries += play.retries;
  end_ns = now_ns;
  if (!play.error.empty()) {
    ++failed;
    ++errors[errors.size() < kErrorsMax || errors.contains(play.error) ? play.error : "others"];
  }
  metrics.ended(play.record);
  if (listener) listener(play);
  pacer.ended(play.record.play, now_ns);
  wake.cancel();
}

Progress LiveReplay::Impl::progress() const {
  Progress now{done, pacer.plays(), open, failed, static_cast<double>(clock.now_ns()) * 1e-9, 0};
  if (now.elapsed_s > 0) now.tokens_per_s = static_cast<double>(tokens) / now.elapsed_s;
  return now;
}

asio::awaitable<void> LiveReplay::Impl::look() {
  while (!is_over) {
    next_look.expires_after(kLookEvery);
    boost::system::error_code woken;
    co_await next_look.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    bar.show(progress());
    if (config.is_sluice && !is_over) peak.see(co_await counters());
  }
}

// Of a server that does not answer now: none.
asio::awaitable<ServerCounters> LiveReplay::Impl::counters() {
  constexpr std::chrono::seconds kPatience{10};
  try {
    const auto deadline = HttpStream::TimePoint::clock::now() + kPatience;
    const HttpAsk ask{"/metrics", {}};
    const HttpReply reply = co_await fetch(target, ask, deadline);
    co_return ServerCounters(reply.body);
  } catch (const boost::system::system_error&) {
  }
  co_return ServerCounters();
}

LiveReplay::LiveReplay(const Config& config, const HttpTarget& target, const Trace& trace,
                       const std::vector<uint32_t>& sessions, const PromptSource& prompts,
                       const LiveRequests& requests, std::ostream* progress, Listener listener)
    : impl_(std::make_unique<Impl>(config, target, trace, sessions, prompts, requests, progress,
                                   std::move(listener))) {}

LiveReplay::~LiveReplay() = default;

void LiveReplay::run() { impl_->run(); }

json::object LiveReplay::result() const {
  json::object out = impl_->metrics.summary(impl_->end_ns);
  out.stable_erase("kv_hit_tokens");  // clients are told only what was not computed again
  out.stable_erase("kv_hit_rate");
  out["retries"] = impl_->retries;
  json::object errors;
  for (const auto& [why, count] : impl_->errors) errors[why] = count;
  out["errors"] = std::move(errors);
  const TimeDistribution& lag = impl_->lag;
  out["lag_s"] = json::object{{"p50", seconds(lag.quantile_ns(0.5))},
                              {"p99", seconds(lag.quantile_ns(0.99))},
                              {"max", seconds(lag.max_ns())}};
  if (impl_->interrupted) out["interrupted_requests"] = impl_->open;
  if (!impl_->config.is_sluice) return out;
  const double elapsed = static_cast<double>(impl_->end_ns) * 1e-9;
  json::object counted = server_result(impl_->before, impl_->after, impl_->peak, elapsed);
  counted["kv_hit_rate"] =
      ratio(counted["kv_hit_tokens"].to_number<double>(), out["prompt_tokens"].to_number<double>());
  for (auto& [key, value] : counted) out[key] = std::move(value);
  return out;
}

}  // namespace net
