// Where a console's answers come from: a running server, or a file that was saved of one.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <string>
#include <vector>

#include "actors/service.hpp"

namespace net {

class ConsoleSource {
 public:
  virtual ~ConsoleSource() = default;
  virtual kernels::Result<memory::CacheReport> report(const memory::ReportQuery& query) = 0;
  virtual kernels::Result<memory::MovePage> moves(const memory::MoveQuery& query) = 0;
  virtual kernels::Result<memory::NodeOutcome> change(const memory::NodeOrder& order) = 0;
  virtual std::vector<actors::NamedRequest> requests() = 0;
  virtual boost::json::object load() = 0;  // what runs, as numbers
};

// Asks `service`, which must outlive it; spans get their text from its tokenizer.
std::unique_ptr<ConsoleSource> make_live_source(actors::Service& service);

// A snapshot of the console, or a move log of --move-log: by its first bytes. Errors name the file.
kernels::Result<std::unique_ptr<ConsoleSource>> open_saved_source(const std::string& path);

// All that a source tells, as one object that open_saved_source() reads back.
kernels::Result<boost::json::object> save_source(ConsoleSource& source);

}  // namespace net
