#!/usr/bin/env python3
"""Converts one of our model directories with llama.cpp's own converter.

    llama_convert.py LLAMA_SOURCE MODEL_DIR OUT.gguf [further arguments of convert_hf_to_gguf.py]

The converter wants the tokenizer as a class that a published model ships as Python; ours is two
files, which this script hands over in that class's place. It needs what the converter needs: numpy,
torch, transformers, PyYAML. Routed experts in MXFP4 stay so, everything else becomes F16.
"""
import base64
import json
import os
import sys
from types import SimpleNamespace


def tokenizer_of(folder):
    """What the converter reads of a tokenizer: ranks by bytes, special ids by text, end of text."""
    ranks = {}
    with open(os.path.join(folder, "tiktoken.model"), "rb") as file:
        for line in file:
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
    with open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8") as file:
        config = json.load(file)
    added = {entry["content"]: int(number)
             for number, entry in config["added_tokens_decoder"].items()}
    return SimpleNamespace(model=SimpleNamespace(_mergeable_ranks=ranks), special_tokens=added,
                           eos_id=added[config["eos_token"]])


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    source, folder, out = sys.argv[1:4]
    sys.path[:0] = [source, os.path.join(source, "gguf-py")]
    import convert_hf_to_gguf as converter
    import transformers
    from conversion.base import TextModel

    transformers.AutoTokenizer.from_pretrained = lambda *_, **__: tokenizer_of(folder)
    # It knows a pre-tokenizer by a hash over one vocabulary's ids; ours splits text as Kimi K2's does.
    TextModel.get_vocab_base_pre = lambda *_: "kimi-k2"
    sys.argv = [converter.__file__, folder, "--outtype", "f16", "--outfile", out, *sys.argv[4:]]
    converter.main()


if __name__ == "__main__":
    main()
