// Damaged weights directories: each is refused with one exact sentence that names the file, key or
// tensor.
#include <catch2/catch.hpp>

#include "weights_support.hpp"

using damage::edit_header;
using damage::edit_json;
using damage::TemporaryDirectory;
namespace json = boost::json;

namespace {

const std::string kGood = std::string(SLUICE_SOURCE_DIR) + "/tests/data/golden-k3";
const std::string kLayer3 = "language_model.model.layers.3.self_attn.";
const std::string kExpert = "language_model.model.layers.2.block_sparse_moe.experts.5.w1";

struct Case {
  const char* name;
  std::function<void(const TemporaryDirectory&)> damage;
  std::string message;
};

std::string weights(const TemporaryDirectory& at) { return at.file("model.safetensors"); }

void edit_text(const TemporaryDirectory& at, const std::function<void(json::object&)>& edit) {
  edit_json(at.file("config.json"),
            [&](json::object& object) { edit(object["text_config"].get_object()); });
}

void set_text(const TemporaryDirectory& at, const char* key, json::value value) {
  edit_text(at, [&](json::object& text) { text[key] = std::move(value); });
}

void set_linear(const TemporaryDirectory& at, const char* key, json::value value) {
  edit_text(at, [&](json::object& text) {
    text["linear_attn_config"].get_object()[key] = std::move(value);
  });
}

void rename_tensor(const TemporaryDirectory& at, const std::string& from, const std::string& to) {
  edit_header(weights(at), [&](json::object& header) {
    header[to] = header[from];
    header.erase(from);
  });
}

// Splits the single file: an index over one shard named `shard`, which is the file under another
// name.
void make_index(const TemporaryDirectory& at, const std::string& shard,
                const std::string& extra_tensor = {}) {
  json::object map;
  for (const auto& [name, entry] : damage::read_header(weights(at)).object) {
    if (name != "__metadata__") map[name] = shard;
  }
  if (!extra_tensor.empty()) map[extra_tensor] = shard;
  damage::write(at.file("model.safetensors.index.json"),
                json::serialize(json::object{{"weight_map", map}}));
}

const std::vector<Case>& config_cases() {
  static const std::vector<Case> cases = {
      {"no config.json",
       [](const TemporaryDirectory& at) { std::filesystem::remove(at.file("config.json")); },
       "DIR/config.json: cannot be read; a model directory needs a config.json"},
      {"config.json is cut off",
       [](const TemporaryDirectory& at) {
         damage::write(at.file("config.json"), "{\"text_config\": {");
       },
       "DIR/config.json: is not valid JSON (incomplete JSON)"},
      {"config.json is a list",
       [](const TemporaryDirectory& at) { damage::write(at.file("config.json"), "[]"); },
       "DIR/config.json: must hold one JSON object"},
      {"a missing key",
       [](const TemporaryDirectory& at) {
         edit_text(at, [](json::object& text) { text.erase("hidden_size"); });
       },
       "DIR/config.json: text_config.hidden_size is missing; expected a whole number from 1 to "
       "1048576"},
      {"a string for a number",
       [](const TemporaryDirectory& at) { set_text(at, "vocab_size", "512"); },
       "DIR/config.json: text_config.vocab_size is \"512\"; expected a whole number from 2 to "
       "16777216"},
      {"a negative size", [](const TemporaryDirectory& at) { set_text(at, "kv_lora_rank", -32); },
       "DIR/config.json: text_config.kv_lora_rank is -32; expected a whole number from 1 to "
       "1048576"},
      {"zero layers", [](const TemporaryDirectory& at) { set_text(at, "num_hidden_layers", 0); },
       "DIR/config.json: text_config.num_hidden_layers is 0; expected a whole number from 1 to "
       "4096"},
      {"an absurd size",
       [](const TemporaryDirectory& at) { set_text(at, "hidden_size", 4'000'000'000u); },
       "DIR/config.json: text_config.hidden_size is 4000000000; expected a whole number from 1 to "
       "1048576"},
      {"a fraction", [](const TemporaryDirectory& at) { set_text(at, "num_experts", 7.5); },
       "DIR/config.json: text_config.num_experts is 7.5E0; expected a whole number from 1 to "
       "65536"},
      {"more experts chosen than there are",
       [](const TemporaryDirectory& at) { set_text(at, "num_experts_per_token", 9); },
       "DIR/config.json: text_config.num_experts_per_token is 9; expected a whole number from 1 to "
       "8"},
      {"a number for a flag",
       [](const TemporaryDirectory& at) { set_text(at, "mla_use_output_gate", 1); },
       "DIR/config.json: text_config.mla_use_output_gate is 1; expected true or false"},
      {"a layer in no list",
       [](const TemporaryDirectory& at) {
         set_linear(at, "kda_layers", {1, 2, 3, 5, 7});
       },
       "DIR/config.json: text_config.linear_attn_config.kda_layers and full_attn_layers both lack "
       "layer 6 (layers count from 1)"},
      {"a layer in both lists",
       [](const TemporaryDirectory& at) {
         set_linear(at, "full_attn_layers", {4, 7, 8, 9});
       },
       "DIR/config.json: text_config.linear_attn_config.full_attn_layers names layer 7 a second "
       "time"},
      {"a layer beyond the last",
       [](const TemporaryDirectory& at) {
         set_linear(at, "full_attn_layers", {4, 8, 9, 10});
       },
       "DIR/config.json: text_config.linear_attn_config.full_attn_layers[3] is 10; expected a "
       "whole number from 1 to 9"},
      {"an odd KDA head", [](const TemporaryDirectory& at) { set_linear(at, "head_dim", 40); },
       "DIR/config.json: text_config.linear_attn_config.head_dim is 40; the KDA kernels need a "
       "multiple of 32"},
      {"a convolution longer than the kernels'",
       [](const TemporaryDirectory& at) { set_linear(at, "short_conv_kernel_size", 17); },
       "DIR/config.json: text_config.linear_attn_config.short_conv_kernel_size is 17; expected a "
       "whole number from 2 to 16"},
      {"rotary attention",
       [](const TemporaryDirectory& at) { set_text(at, "mla_use_nope", false); },
       "DIR/config.json: text_config.mla_use_nope must be true; rotary positions in the attention "
       "layers are not supported"},
      {"grouped routing", [](const TemporaryDirectory& at) { set_text(at, "num_expert_group", 4); },
       "DIR/config.json: text_config.num_expert_group is 4; only 1 (no grouped routing) is "
       "supported"},
      {"another activation",
       [](const TemporaryDirectory& at) { set_text(at, "hidden_act", "gelu"); },
       "DIR/config.json: text_config.hidden_act is \"gelu\"; supported are \"situ\" and \"silu\""},
      {"another router",
       [](const TemporaryDirectory& at) { set_text(at, "moe_router_activation_func", "softmax"); },
       "DIR/config.json: text_config.moe_router_activation_func is \"softmax\"; only \"sigmoid\" "
       "is supported"},
      {"another quantization",
       [](const TemporaryDirectory& at) {
         set_text(at, "quantization_config",
                  {{"quant_method", "compressed-tensors"}, {"format", "int-quantized"}});
       },
       "DIR/config.json: text_config.quantization_config.format is \"int-quantized\"; only "
       "\"mxfp4-pack-quantized\" of "
       "\"compressed-tensors\" is supported"},
      {"an end id outside the vocabulary",
       [](const TemporaryDirectory& at) {
         set_text(at, "eos_token_id", {258, 512});
       },
       "DIR/config.json: text_config.eos_token_id[1] is 512; expected a whole number from 0 to "
       "511"},
      {"bad generation_config.json",
       [](const TemporaryDirectory& at) {
         damage::write(at.file("generation_config.json"), "nope");
       },
       "DIR/generation_config.json: is not valid JSON (syntax error)"},
  };
  return cases;
}

const std::vector<Case>& file_cases() {
  static const std::vector<Case> cases = {
      {"no weights", [](const TemporaryDirectory& at) { std::filesystem::remove(weights(at)); },
       "DIR: holds neither model.safetensors nor model.safetensors.index.json"},
      {"an empty file", [](const TemporaryDirectory& at) { damage::write(weights(at), ""); },
       "DIR/model.safetensors: is 0 bytes long; a safetensors file starts with an 8-byte header "
       "length"},
      {"a header longer than the file",
       [](const TemporaryDirectory& at) {
         damage::write(weights(at), std::string(7, '\xff') + "\x01" + "{}");
       },
       "DIR/model.safetensors: header length is 144115188075855871 bytes, but only 2 bytes follow "
       "it"},
      {"a header that is no JSON",
       [](const TemporaryDirectory& at) { damage::write_header(weights(at), "{\"a\": ", ""); },
       "DIR/model.safetensors: the header is not valid JSON (incomplete JSON)"},
      {"an unknown dtype",
       [](const TemporaryDirectory& at) {
         edit_header(weights(at), [](json::object& h) {
           h["language_model.lm_head.weight"].get_object()["dtype"] = "F12";
         });
       },
       "DIR/model.safetensors: tensor language_model.lm_head.weight: unknown dtype \"F12\""},
      {"a truncated file",
       [](const TemporaryDirectory& at) {
         std::filesystem::resize_file(weights(at), std::filesystem::file_size(weights(at)) - 100);
       },
       "DIR/model.safetensors: tensor language_model.lm_head.weight: ends at byte 1121792 of the "
       "data, but the file holds only "
       "1121692 bytes of data; is it truncated?"},
      {"offsets that do not fit the shape",
       [](const TemporaryDirectory& at) {
         edit_header(weights(at), [](json::object& h) {
           h["language_model.model.norm.weight"].get_object()["shape"] = {65};
         });
       },
       "DIR/model.safetensors: tensor language_model.model.norm.weight: shape [65] of BF16 does "
       "not take the 128 bytes its "
       "data_offsets give it"},
      {"a shape that overflows",
       [](const TemporaryDirectory& at) {
         edit_header(weights(at), [](json::object& h) {
           h["language_model.model.norm.weight"].get_object()["shape"] = {uint64_t{1} << 62,
                                                                          uint64_t{1} << 62};
         });
       },
       "DIR/model.safetensors: tensor language_model.model.norm.weight: shape "
       "[4611686018427387904, 4611686018427387904] of BF16 "
       "does not take the 128 bytes its data_offsets give it"},
      {"descending offsets",
       [](const TemporaryDirectory& at) {
         edit_header(weights(at), [](json::object& h) {
           h["language_model.model.norm.weight"].get_object()["data_offsets"] = {128, 0};
         });
       },
       "DIR/model.safetensors: tensor language_model.model.norm.weight: data_offsets is missing or "
       "not two ascending whole numbers"},
      {"tensors that overlap",
       [](const TemporaryDirectory& at) {
         edit_header(weights(at), [](json::object& h) {
           h["language_model.model.norm.weight"].get_object()["data_offsets"] = {0, 128};
         });
       },
       "DIR/model.safetensors: tensors language_model.model.embed_tokens.weight and "
       "language_model.model.norm.weight overlap in the "
       "file"},
      {"an index without weight_map",
       [](const TemporaryDirectory& at) {
         damage::write(at.file("model.safetensors.index.json"), "{}");
       },
       "DIR/model.safetensors.index.json: weight_map is missing or not an object"},
      {"an index that names a missing shard",
       [](const TemporaryDirectory& at) { make_index(at, "model-00001-of-00001.safetensors"); },
       "DIR/model.safetensors.index.json: names the shard model-00001-of-00001.safetensors (for "
       "tensor "
       "language_model.lm_head.weight), which is missing"},
      {"an index that names a tensor its shard lacks",
       [](const TemporaryDirectory& at) { make_index(at, "model.safetensors", "zebra"); },
       "DIR/model.safetensors.index.json: places tensor zebra in model.safetensors, which does not "
       "hold it"},
      {"an index that points outside",
       [](const TemporaryDirectory& at) { make_index(at, "../model.safetensors"); },
       "DIR/model.safetensors.index.json: weight_map.language_model.model.embed_tokens.weight must "
       "be the name of a file beside the index"},
  };
  return cases;
}

const std::vector<Case>& tensor_cases() {
  static const std::vector<Case> cases = {
      {"a missing tensor",
       [](const TemporaryDirectory& at) {
         rename_tensor(at, kLayer3 + "q_b_proj.weight", "other");
       },
       "DIR: tensor " + kLayer3 + "q_b_proj.weight is missing"},
      {"a missing scale",
       [](const TemporaryDirectory& at) { rename_tensor(at, kExpert + ".weight_scale", "other"); },
       "DIR: tensor " + kExpert + ".weight_scale is missing"},
      {"a transposed tensor",
       [](const TemporaryDirectory& at) {
         edit_header(weights(at), [](json::object& h) {
           h[kLayer3 + "q_a_proj.weight"].get_object()["shape"] = {64, 32};
         });
       },
       "tensor " + kLayer3 + "q_a_proj.weight: expected shape [32, 64], found [64, 32]"},
      {"another geometry in config.json",
       [](const TemporaryDirectory& at) { set_text(at, "moe_intermediate_size", 64); },
       "tensor language_model.model.layers.1.block_sparse_moe.shared_experts.down_proj.weight: "
       "expected shape [64, 128], found "
       "[64, 64]"},
      {"integers for weights",
       [](const TemporaryDirectory& at) {
         edit_header(weights(at), [](json::object& h) {
           h["language_model.model.norm.weight"].get_object()["dtype"] = "I16";
         });
       },
       "tensor language_model.model.norm.weight: expected dtype BF16, F16 or F32, found I16"},
      {"signed scales",
       [](const TemporaryDirectory& at) {
         edit_header(weights(at), [](json::object& h) {
           h[kExpert + ".weight_scale"].get_object()["dtype"] = "I8";
         });
       },
       "tensor " + kExpert + ".weight_scale: expected dtype U8, found I8"},
      {"a scale that is NaN",
       [](const TemporaryDirectory& at) {
         auto header = damage::read_header(weights(at));
         const auto offset = header.object[kExpert + ".weight_scale"]
                                 .get_object()["data_offsets"]
                                 .get_array()[0]
                                 .to_number<size_t>();
         header.data[offset + 7] = '\xff';
         damage::write_header(weights(at), json::serialize(header.object), header.data);
       },
       "tensor " + kExpert + ".weight_scale: scale [3, 1] is 255, which means NaN"},
      {"A_log too short for the heads",
       [](const TemporaryDirectory& at) {
         edit_header(weights(at), [](json::object& h) {
           auto& entry = h["language_model.model.layers.0.self_attn.A_log"].get_object();
           entry["shape"] = {1};
           entry["data_offsets"].get_array()[1] =
               entry["data_offsets"].get_array()[0].to_number<uint64_t>() + 4;
         });
       },
       "tensor language_model.model.layers.0.self_attn.A_log: expected one axis of at least 2 "
       "values, found shape [1]"},
  };
  return cases;
}

void check(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    INFO(one.name);
    const TemporaryDirectory directory(kGood);
    one.damage(directory);
    CHECK(damage::load_error(directory.path()) == one.message);
  }
}

}  // namespace

TEST_CASE("A damaged config is refused with its exact reason", "[runtime][weights]") {
  check(config_cases());
}

TEST_CASE("A damaged weights file is refused with its exact reason", "[runtime][weights]") {
  check(file_cases());
}

TEST_CASE("A wrong tensor is refused by name with what was expected and found",
          "[runtime][weights]") {
  check(tensor_cases());
}

TEST_CASE("Harmless variations of a weights directory load", "[runtime][weights]") {
  const TemporaryDirectory directory(kGood);
  SECTION("as it is") {}
  SECTION("with an index over one shard") {
    std::filesystem::rename(weights(directory), directory.file("model-00001-of-00001.safetensors"));
    std::filesystem::copy(directory.file("model-00001-of-00001.safetensors"), weights(directory));
    make_index(directory, "model-00001-of-00001.safetensors");
    std::filesystem::remove(weights(directory));
  }
  SECTION("without language_model. before the names") {
    edit_header(weights(directory), [](json::object& header) {
      json::object renamed;
      for (const auto& [name, entry] : header) {
        const std::string key(name);
        renamed[key.starts_with("language_model.") ? key.substr(15) : key] = entry;
      }
      header = renamed;
    });
  }
  SECTION("with a header of odd length, so that no tensor is aligned") {
    const auto header = damage::read_header(weights(directory));
    std::string text = json::serialize(header.object);
    text.append(text.size() % 2 == 0 ? 1 : 2, ' ');
    damage::write_header(weights(directory), text, header.data);
  }
  SECTION("with tensors nobody asks for") {
    rename_tensor(directory, "language_model.model.layers.0.self_attention_res_proj.weight", "x");
  }
  CHECK(damage::load_error(directory.path()).empty());
}
