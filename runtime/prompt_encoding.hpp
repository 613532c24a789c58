// Prompts of any form to token ids: what a generation reads is what /tokenize shows.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/result.hpp"
#include "runtime/request.hpp"
#include "runtime/tokenizer.hpp"

namespace runtime {

// The request's field that holds the prompt, as errors name it: "messages" or "prompt".
const char* field_of(const Prompt& prompt);

// What encoding ends with once nobody waits for it.
kernels::Error encoding_stopped();

// Ids are taken as they are; anything else needs a tokenizer. Text that could not fit into
// `context_length` tokens if each were the longest is refused before it costs anything. Ends with
// encoding_stopped() once keep_going says no.
kernels::Result<std::vector<TokenId>> encode_prompt(const Tokenizer* tokenizer,
                                                    const Prompt& prompt, uint32_t context_length,
                                                    const KeepGoing& keep_going = {});

}  // namespace runtime
