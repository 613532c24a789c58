#include "net/console_source.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <fstream>
#include <sstream>

#include "memory/move_log_file.hpp"
#include "net/cache_json.hpp"
#include "runtime/detokenizer.hpp"

namespace net {
namespace {

namespace json = boost::json;

constexpr int64_t kSnapshotVersion = 1;
constexpr uint32_t kMovesAtOnce = 4096;  // the scheduler copies so many between two steps

class LiveSource final : public ConsoleSource {
 public:
  explicit LiveSource(actors::Service& service) : service_(service) {}

  kernels::Result<memory::CacheReport> report(const memory::ReportQuery& query) override {
    auto report = service_.cache_report(query);
    if (!report) return report;
    const auto tokenizer = service_.tokenizer();
    if (tokenizer == nullptr) return report;
    for (memory::NodeReport& node : report->nodes) {
      runtime::Detokenizer text(tokenizer, false);
      for (const memory::KeyElement element : node.span) {
        if (element < tokenizer->size())
          node.text += text.push(static_cast<runtime::TokenId>(element));
      }
      node.text += text.finish();
    }
    return report;
  }
  kernels::Result<memory::MovePage> moves(const memory::MoveQuery& query) override {
    return service_.moves(query);
  }
  kernels::Result<memory::NodeOutcome> change(const memory::NodeOrder& order) override {
    return service_.change_node(order);
  }
  std::vector<actors::NamedRequest> requests() override { return service_.named_requests(); }

  json::object load() override {
    const actors::ServiceMetrics now = service_.metrics();
    const actors::ServiceInfo info = service_.info();
    return {{"model", info.model_name},
            {"running", now.scheduler.running},
            {"queued", now.scheduler.queued},
            {"open_requests", now.open_requests},
            {"tokens_per_second", now.gen_throughput},
            {"steps", now.scheduler.steps_total},
            {"prompt_tokens", now.scheduler.prompt_tokens_total},
            {"generated_tokens", now.scheduler.generation_tokens_total},
            {"retracted", now.scheduler.retracted_total},
            {"snapshots", now.scheduler.snapshots_total},
            {"donations", now.scheduler.donations_total},
            {"rejected", now.rejected_total}};
  }

 private:
  actors::Service& service_;
};

kernels::Error only_moves() {
  return kernels::invalid("this file is a move log: it answers moves, verify and help");
}

class SavedSource final : public ConsoleSource {
 public:
  std::optional<memory::CacheReport> cache;
  memory::MovePage log;
  std::vector<actors::NamedRequest> named;
  json::object numbers;

  kernels::Result<memory::CacheReport> report(const memory::ReportQuery& query) override {
    if (!cache) return only_moves();
    memory::CacheReport copy = *cache;
    for (memory::NodeReport& node : copy.nodes) {
      if (node.span.size() > query.span_elements) node.span.resize(query.span_elements);
    }
    return copy;
  }
  kernels::Result<memory::MovePage> moves(const memory::MoveQuery& query) override {
    memory::MovePage page{log.geometry, log.first, log.next, {}};
    for (const memory::MoveRecord& record : log.records) {
      if (query.from != 0 && page.records.size() == query.max) break;
      if (record.number >= query.from && query.filter.matches(record))
        page.records.push_back(record);
    }
    if (page.records.size() > query.max)
      page.records.erase(page.records.begin(), page.records.end() - query.max);
    return page;
  }
  kernels::Result<memory::NodeOutcome> change(const memory::NodeOrder&) override {
    return kernels::invalid("a saved file cannot be changed; connect to a server");
  }
  std::vector<actors::NamedRequest> requests() override { return named; }
  json::object load() override { return numbers; }
};

template <class T>
T value_or_throw(kernels::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

// Throws with what is wrong.
std::unique_ptr<SavedSource> read_snapshot(const json::object& saved) {
  auto source = std::make_unique<SavedSource>();
  source->cache = value_or_throw(report_from_json(saved.at("report").as_object()));
  source->log.geometry = value_or_throw(geometry_from_json(saved.at("geometry").as_object()));
  source->log.first = saved.at("first").to_number<uint64_t>();
  source->log.next = saved.at("next").to_number<uint64_t>();
  for (const json::value& move : saved.at("moves").as_array())
    source->log.records.push_back(value_or_throw(move_from_json(move.as_object())));
  for (const json::value& request : saved.at("requests").as_array()) {
    const json::object& one = request.as_object();
    source->named.push_back({std::string(one.at("rid").as_string().c_str()),
                             {one.at("id").to_number<uint64_t>()}});
  }
  source->numbers = saved.at("load").as_object();
  return source;
}

kernels::Result<std::unique_ptr<ConsoleSource>> open_move_log(const std::string& path) {
  auto contents = memory::read_move_log(path);
  if (!contents) return contents.error();
  auto source = std::make_unique<SavedSource>();
  source->log.geometry = contents->geometry;
  source->log.records = std::move(contents->records);
  if (!source->log.records.empty()) {
    source->log.first = source->log.records.front().number;
    source->log.next = source->log.records.back().number + 1;
  }
  return std::unique_ptr<ConsoleSource>(std::move(source));
}

}  // namespace

std::unique_ptr<ConsoleSource> make_live_source(actors::Service& service) {
  return std::make_unique<LiveSource>(service);
}

kernels::Result<std::unique_ptr<ConsoleSource>> open_saved_source(const std::string& path) {
  if (memory::is_move_log(path)) return open_move_log(path);
  std::ifstream in(path, std::ios::binary);
  if (!in) return kernels::invalid(path + ": cannot be read");
  std::ostringstream text;
  text << in.rdbuf();
  try {
    const json::value saved = json::parse(text.str());
    if (saved.at("sluice_snapshot").to_number<int64_t>() != kSnapshotVersion)
      return kernels::invalid(path + ": a snapshot of another version");
    return std::unique_ptr<ConsoleSource>(read_snapshot(saved.as_object()));
  } catch (const std::exception& failure) {
    return kernels::invalid(path + ": is neither a snapshot nor a move log (" + failure.what() +
                            ")");
  }
}

kernels::Result<json::object> save_source(ConsoleSource& source) {
  auto report = source.report({memory::ReportQuery::kAll});
  if (!report) return report.error();
  memory::MoveQuery query;
  query.from = 1;
  query.max = kMovesAtOnce;
  json::array moves, requests;
  json::object saved{{"sluice_snapshot", kSnapshotVersion}};
  const uint64_t end = [&] {
    memory::MoveQuery newest;
    newest.max = 0;
    const auto page = source.moves(newest);
    return page ? page->next : 1;
  }();
  uint64_t first = 0;
  for (bool more = true; more;) {
    auto page = source.moves(query);
    if (!page) return page.error();
    saved["geometry"] = to_json(page->geometry);
    more = false;
    for (const memory::MoveRecord& record : page->records) {
      if (record.number >= end) break;
      if (first != 0 && record.number != query.from) moves.clear(), first = 0;  // it moved on
      if (first == 0) first = record.number;
      moves.push_back(to_json(record));
      query.from = record.number + 1;
      more = query.from < end;
    }
  }
  saved["first"] = first == 0 ? end : first;
  saved["next"] = end;
  saved["moves"] = std::move(moves);
  for (const actors::NamedRequest& request : source.requests())
    requests.push_back(json::object{{"rid", request.rid}, {"id", request.id.value}});
  saved["requests"] = std::move(requests);
  saved["load"] = source.load();
  saved["report"] = to_json(*report);
  return saved;
}

}  // namespace net
