#include "net/replay/step_probe.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <limits>
#include <ostream>
#include <stdexcept>

#include "net/replay/live_client.hpp"
#include "runtime/canonical_json.hpp"
#include "runtime/counter_random.hpp"

namespace net {
namespace {

constexpr uint32_t kDecoded = 48;      // tokens of a stream whose gaps are measured
constexpr uint32_t kShortPrompt = 32;  // in front of them

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// One stream of a round.
struct Stream {
  HttpAsk ask;
  LivePlay play;
  std::vector<uint64_t> heard_ns;
};

class Prober {
 public:
  Prober(const ProbeServer& server, uint64_t seed)
      : server_(server), random_(seed, "probe"), client_(server.target, 0, clock_) {}

  // Adds what the round showed, in microseconds.
  void round(const ProbeLoad& load, std::vector<double>& measured) {
    std::vector<Stream> streams(load.streams);
    asio::io_context loop{1};
    for (Stream& stream : streams) {
      stream.ask = ask(load);
      asio::co_spawn(loop, run(stream), asio::detached);
    }
    loop.run();
    for (const Stream& stream : streams) check(load, stream);
    if (load.is_prefill()) {
      const PlayRecord& record = streams.front().play.record;
      measured.push_back(static_cast<double>(record.first_ns - record.sent_ns) / 1000);
    } else {
      add_gaps(streams, measured);
    }
  }

 private:
  asio::awaitable<void> run(Stream& stream) {
    const LiveClient::Heard heard = [&stream](PlayRecord& record, uint64_t now_ns) {
      if (record.output_tokens++ == 0) record.first_ns = now_ns;
      stream.heard_ns.push_back(now_ns);
    };
    stream.play.record.sent_ns = clock_.now_ns();
    co_await client_.play(stream.ask, stream.play, heard);
  }

  HttpAsk ask(const ProbeLoad& load) {
    std::string prompt;
    for (uint32_t i = 0; i < load.prompt_tokens; ++i) {
      const uint64_t id = random_.bits(drawn_++) % server_.vocabulary;
      prompt += i == 0 ? "" : ",";
      prompt += std::to_string(id);
    }
    return {"/v1/completions", "{\"model\":" + runtime::json_quoted(server_.model) +
                                   ",\"prompt\":[" + prompt +
                                   "],\"max_tokens\":" + std::to_string(load.output_tokens) +
                                   ",\"temperature\":0,\"ignore_eos\":true,\"stream\":true}"};
  }

  // An event may hold several tokens, where their reader was kept from its work.
  static void check(const ProbeLoad& load, const Stream& stream) {
    const std::string whose = "calibration: a request of " + load.name();
    if (!stream.play.error.empty())
      throw std::runtime_error(whose + " failed: " + stream.play.error);
    if (2 * stream.heard_ns.size() >= load.output_tokens) return;
    throw std::runtime_error(whose + " heard its " + std::to_string(load.output_tokens) +
                             " tokens in " + std::to_string(stream.heard_ns.size()) +
                             " pieces; the machine is too busy for a measurement");
  }

  // Between two tokens, while every stream has had one and none has ended.
  static void add_gaps(const std::vector<Stream>& streams, std::vector<double>& measured) {
    uint64_t begin = 0, end = std::numeric_limits<uint64_t>::max();
    for (const Stream& stream : streams) {
      begin = std::max(begin, stream.heard_ns.front());
      end = std::min(end, stream.heard_ns.back());
    }
    for (const Stream& stream : streams) {
      for (size_t i = 1; i < stream.heard_ns.size(); ++i) {
        const uint64_t from = stream.heard_ns[i - 1], to = stream.heard_ns[i];
        if (from >= begin && to <= end) measured.push_back(static_cast<double>(to - from) / 1000);
      }
    }
  }

  const ProbeServer& server_;
  const runtime::CounterRandom random_;
  uint64_t drawn_ = 0;
  ReplayClock clock_;
  LiveClient client_;
};

}  // namespace

std::string ProbeLoad::name() const {
  if (is_prefill()) return "prompt of " + std::to_string(prompt_tokens);
  return std::to_string(streams) + " decoding behind " + std::to_string(prompt_tokens);
}

std::vector<ProbeLoad> probe_loads(const ProbeLimits& limits) {
  std::vector<ProbeLoad> loads;
  const auto add = [&](uint32_t streams, uint32_t prompt, uint32_t output) {
    if (streams <= limits.max_running && prompt + output <= limits.context_length)
      loads.push_back({streams, prompt, output});
  };
  for (const uint32_t prompt : {64u, 128u, 256u, 512u, 1024u, 2048u}) add(1, prompt, 1);
  for (const uint32_t streams : {1u, 2u, 4u, 8u, 16u, 32u}) add(streams, kShortPrompt, kDecoded);
  add(1, 2048, kDecoded);
  add(4, 1024, kDecoded);
  return loads;
}

std::vector<double> probe_steps(const ProbeServer& server, const std::vector<ProbeLoad>& loads,
                                uint32_t rounds, uint64_t seed, std::ostream* progress) {
  Prober prober(server, seed);
  std::vector<std::vector<double>> measured(loads.size());
  // A first round, not kept, warms the server up; rounds are spread over time, so that a moment at
  // which the machine was busy with something else touches each load a little.
  for (uint32_t round = 0; round <= rounds; ++round) {
    for (size_t i = 0; i < loads.size(); ++i) {
      if (progress != nullptr)
        *progress << "\rround " << round << "/" << rounds << "  " << loads[i].name()
                  << "            " << std::flush;
      std::vector<double> warm_up;
      prober.round(loads[i], round == 0 ? warm_up : measured[i]);
    }
  }
  if (progress != nullptr) *progress << "\r" << std::string(60, ' ') << "\r" << std::flush;
  std::vector<double> out;
  for (size_t i = 0; i < loads.size(); ++i) {
    if (measured[i].empty()) {
      throw std::runtime_error("calibration: the streams of " + loads[i].name() +
                               " never decoded side by side; is the server busy?");
    }
    out.push_back(median(std::move(measured[i])));
    if (out.back() <= 0)
      throw std::runtime_error("calibration: tokens of " + loads[i].name() + " came all at once");
  }
  return out;
}

}  // namespace net
