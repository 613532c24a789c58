// Fields that chat and completions share.
#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <random>

#include "net/openai_request.hpp"
#include "net/openai_writer.hpp"
#include "runtime/utf8.hpp"

namespace net {
namespace json = boost::json;

namespace {

constexpr size_t kStopStringsMax = 16;
constexpr size_t kStopBytesMax =
    1024;  // each: text this long is held back while it may still match
constexpr size_t kStopIdsMax = 64;
constexpr size_t kBiasEntriesMax = 1024;
constexpr size_t kRidBytesMax = 128;
constexpr int64_t kTokensMax = 1 << 30;
constexpr int64_t kDeadlineMsMax = 7 * 24 * 3600 * 1000LL;  // a week
constexpr double kGreedyBelow =
    1e-6;  // a temperature below this overflows logits / T and means greedy anyway

void read_stop(Fields& fields, const actors::ServiceInfo& info,
               runtime::GenerateRequest& generate) {
  const json::value* stop = fields.find("stop");
  if (stop == nullptr) return;
  const auto add = [&](const std::string& name, const json::value& value) {
    if (!value.is_string()) return fields.expected(name, "a string", value);
    if (value.get_string().empty()) return fields.fail(name, "must not be an empty string");
    if (value.get_string().size() > kStopBytesMax)
      return fields.fail(name, "must be at most 1024 bytes long, got " +
                                   std::to_string(value.get_string().size()));
    generate.stop.emplace_back(value.get_string().data(), value.get_string().size());
  };
  if (stop->is_string())
    add("stop", *stop);
  else if (!stop->is_array())
    fields.expected("stop", "a string or an array of strings", *stop);
  else if (stop->get_array().size() > kStopStringsMax)
    fields.fail("stop",
                "must hold at most 16 strings, got " + std::to_string(stop->get_array().size()));
  else
    for (size_t i = 0; i < stop->get_array().size(); ++i)
      add(element("stop", i), stop->get_array()[i]);
  if (!generate.stop.empty() && !info.has_tokenizer)
    fields.fail("stop", "needs a tokenizer, and this model has none; use stop_token_ids");
}

void read_stop_ids(Fields& fields, runtime::SamplingParams& sampling) {
  const json::array* ids = fields.array("stop_token_ids");
  if (ids == nullptr) return;
  if (ids->size() > kStopIdsMax)
    return fields.fail("stop_token_ids",
                       "must hold at most 64 ids, got " + std::to_string(ids->size()));
  for (size_t i = 0; i < ids->size(); ++i)
    if (const auto id = read_token_id(fields, "stop_token_ids", i, (*ids)[i]))
      sampling.stop_ids.push_back(*id);
}

void read_logit_bias(Fields& fields, runtime::SamplingParams& sampling) {
  const json::object* bias = fields.object("logit_bias");
  if (bias == nullptr) return;
  if (bias->size() > kBiasEntriesMax)
    return fields.fail("logit_bias",
                       "must hold at most 1024 entries, got " + std::to_string(bias->size()));
  std::map<runtime::TokenId, float> entries;
  for (const json::key_value_pair& entry : *bias) {
    const std::string_view key(entry.key().data(), entry.key().size());
    runtime::TokenId id = 0;
    const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (code != std::errc() || end != key.data() + key.size() || id < 0) {
      std::string shown;
      append_quoted(shown, runtime::code_point_prefix(key, 20));
      return fields.fail("logit_bias", "must have token ids as its keys, got " + shown);
    }
    json::error_code ignored;
    const double value =
        entry.value().is_number() ? entry.value().to_number<double>(ignored) : 1000.0;
    if (!(value >= -100 && value <= 100))
      return fields.fail("logit_bias", "must map ids to numbers between -100 and 100, got " +
                                           describe(entry.value()) + " for id " +
                                           std::to_string(id));
    entries[id] = static_cast<float>(value);
  }
  sampling.logit_bias.assign(entries.begin(), entries.end());
}

uint64_t read_seed(Fields& fields) {
  const json::value* seed = fields.find("seed");
  if (seed == nullptr) {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }
  if (seed->is_uint64()) return seed->get_uint64();
  if (const auto number = exact_integer(*seed)) return static_cast<uint64_t>(*number);
  fields.expected("seed", "a 64-bit integer", *seed);
  return 0;
}

void read_sampling(Fields& fields, runtime::SamplingParams& sampling) {
  const auto number = [&](std::string_view name, NumberRange range, float& target) {
    if (const auto value = fields.number(name, range)) target = static_cast<float>(*value);
  };
  number("temperature", {0, 2}, sampling.temperature);
  if (sampling.temperature < kGreedyBelow) sampling.temperature = 0;
  number("top_p", {0, 1, true}, sampling.top_p);
  sampling.top_p =
      std::max(sampling.top_p, std::numeric_limits<float>::min());  // a double may round to 0
  number("min_p", {0, 1}, sampling.min_p);
  number("repetition_penalty", {0.01, 2}, sampling.repetition_penalty);
  number("presence_penalty", {-2, 2}, sampling.presence_penalty);
  number("frequency_penalty", {-2, 2}, sampling.frequency_penalty);
  const auto top_k = fields.integer("top_k", {-1, std::numeric_limits<int32_t>::max()});
  sampling.top_k =
      static_cast<int32_t>(std::max<int64_t>(top_k.value_or(0), 0));  // -1 and 0 both mean off
  read_logit_bias(fields, sampling);
  sampling.seed = read_seed(fields);
  sampling.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  read_stop_ids(fields, sampling);
}

void read_token_counts(Fields& fields, TokenLimits limits, runtime::GenerateRequest& generate) {
  auto max_tokens = fields.integer("max_tokens", {limits.least, kTokensMax});
  if (const auto newer = fields.integer("max_completion_tokens", {limits.least, kTokensMax}))
    max_tokens = newer;
  generate.default_max_tokens = limits.when_absent;
  if (max_tokens) generate.max_tokens = static_cast<uint32_t>(*max_tokens);
  const auto min_tokens = fields.integer("min_tokens", {0, kTokensMax});
  generate.sampling.min_tokens = static_cast<uint32_t>(min_tokens.value_or(0));
  const uint32_t most = generate.max_tokens.value_or(generate.default_max_tokens);
  const bool bounded = generate.max_tokens || generate.default_max_tokens > 0;
  if (bounded && generate.sampling.min_tokens > most)
    fields.fail("min_tokens", "must be at most max_tokens (" + std::to_string(most) + "), got " +
                                  std::to_string(generate.sampling.min_tokens));
}

std::string read_rid(Fields& fields) {
  for (const std::string_view name : {"rid", "request_id"}) {
    const auto rid = fields.string(name);
    if (!rid) continue;
    if (rid->empty() || rid->size() > kRidBytesMax)
      fields.fail(name, "must be 1 to 128 bytes long, got " + std::to_string(rid->size()));
    return *rid;
  }
  return {};
}

std::string read_model(Fields& fields, const actors::ServiceInfo& info) {
  const std::string model = fields.string("model").value_or(info.model_name);
  const size_t colon = model.find(':');
  if (colon != std::string::npos && model != info.model_name) {
    std::string shown;
    append_quoted(shown, model.substr(colon + 1));
    fields.fail({kernels::ErrorCode::kNotFound,
                 "model names the adapter " + shown +
                     " (after the colon), and no adapter of that name is loaded",
                 "model"});
  }
  return model;
}

void read_stream(Fields& fields, CommonFields& common) {
  common.stream = fields.boolean("stream").value_or(false);
  const json::object* options = fields.object("stream_options");
  if (options == nullptr) return;
  if (!common.stream) return fields.fail("stream_options", "is only allowed when stream is true");
  Fields inner = fields.inside("stream_options", *options);
  common.include_usage = inner.boolean("include_usage").value_or(false);
}

}  // namespace

CommonFields read_common(Fields& fields, const actors::ServiceInfo& info, TokenLimits limits,
                         runtime::GenerateRequest& generate) {
  CommonFields common;
  common.model = read_model(fields, info);
  read_stream(fields, common);
  generate.n = static_cast<uint32_t>(fields.integer("n", {1, kChoicesPerPromptMax}).value_or(1));
  read_token_counts(fields, limits, generate);
  read_sampling(fields, generate.sampling);
  read_stop(fields, info, generate);
  generate.include_stop_text = fields.boolean("include_stop_str_in_output").value_or(false);
  generate.skip_special_tokens = fields.boolean("skip_special_tokens").value_or(true);
  generate.priority =
      static_cast<int32_t>(fields
                               .integer("priority", {std::numeric_limits<int32_t>::min(),
                                                     std::numeric_limits<int32_t>::max()})
                               .value_or(0));
  if (const auto deadline = fields.integer("deadline_ms", {1, kDeadlineMsMax}))
    generate.deadline_ms = static_cast<uint64_t>(*deadline);
  generate.cache_salt = fields.string("cache_salt").value_or("");
  // OpenAI's name for it; agents send the id of their conversation.
  generate.session = fields.string("prompt_cache_key").value_or("");
  generate.rid = read_rid(fields);
  return common;
}

std::optional<runtime::TokenId> read_token_id(Fields& fields, std::string_view name, size_t index,
                                              const json::value& value) {
  const auto id = exact_integer(value);
  if (id && *id >= 0 && *id <= std::numeric_limits<runtime::TokenId>::max())
    return static_cast<runtime::TokenId>(*id);
  fields.expected(element(name, index), "a token id", value);
  return std::nullopt;
}

}  // namespace net
