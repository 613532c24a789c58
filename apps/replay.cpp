// sluice-replay: recorded traffic. `inspect` says what a trace holds.
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "net/trace/trace_facts.hpp"
#include "net/trace/trace_reader.hpp"
#include "runtime/canonical_json.hpp"
#include "runtime/shipped_model.hpp"

namespace {

void add_trace_options(CLI::App& command, std::vector<std::string>& files,
                       net::TraceOptions& options) {
  options.model = runtime::shipped_model();
  command
      .add_option("FILE", files,
                  "Trace: Mooncake jsonl, kv-cache-tester json or tree csv, OpenAI messages jsonl, "
                  "Azure csv or a record of sluice-serve; gzip or plain")
      ->required();
  command
      .add_option("--block-tokens", options.block_tokens,
                  "Tokens of a block, where the file does not say; 0 = 512 for Mooncake, else 64")
      ->check(CLI::Range(0u, 1u << 20))
      ->capture_default_str();
  command
      .add_option("--model", options.model,
                  "Directory of the model whose template and tokenizer read messages")
      ->capture_default_str();
}

void add_inspect(CLI::App& app) {
  struct Inspect {
    std::vector<std::string> files;
    net::TraceOptions options;
    bool json = false;
  };
  auto* command = app.add_subcommand(
      "inspect", "Print what a trace holds: requests, sessions, lengths, shared prefixes");
  auto inspect = std::make_shared<Inspect>();
  add_trace_options(*command, inspect->files, inspect->options);
  command->add_flag("--json", inspect->json, "Print one JSON object instead of text");
  command->final_callback([inspect] {
    const net::Trace trace = net::read_trace(inspect->files, inspect->options);
    const net::TraceFacts facts = net::facts_of(trace);
    if (!inspect->json) {
      std::cout << net::facts_text(trace, facts);
      return;
    }
    const auto node = runtime::to_json_node(net::facts_json(trace, facts));
    std::cout << runtime::write_json(node, runtime::kSpacedJson) << "\n";
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Looks into recorded traffic.", "sluice-replay"};
  app.require_subcommand(1);
  add_inspect(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::cerr << "sluice-replay: " << error.what() << "\n";
    return 1;
  }
}
