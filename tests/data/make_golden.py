#!/usr/bin/env python3
"""Makes a small random checkpoint and its expected results from the float64 reference model (the "oracle").

  SLUICE_ORACLE=DIR make_golden.py OUT [--quick LENGTH,...] [--golden-seed N] [make_checkpoint.py arguments]

The vision tower is left out. Without --quick the results are those of the oracle's golden.py; with it, only sequences of
the given lengths, every position's logits, and a short greedy continuation (seconds instead of minutes).
`make_golden.py --committed` writes the directories that are committed beside this file.
"""
import os
import subprocess
import sys

ORACLE = os.environ.get("SLUICE_ORACLE", os.path.join(os.path.dirname(__file__), "../../../shared/oracle"))
sys.path.insert(0, ORACLE)
sys.dont_write_bytecode = True
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np

import golden
import k3_oracle
import make_checkpoint

MIN_GAP = 2e-5  # routing decisions closer than this may differ in float32

SMALL = ["hidden_size=64", "num_attention_heads=2", "num_key_value_heads=2", "intermediate_size=96", "kv_lora_rank=32",
         "qk_nope_head_dim=16", "v_head_dim=16", "linear_attn_config.num_heads=2", "linear_attn_config.head_dim=32",
         "num_experts=8", "num_experts_per_token=3", "moe_intermediate_size=32"]
COMMITTED = {"golden-k3": ["--preset", "tiny-k3"] + SMALL + ["q_lora_rank=32", "routed_expert_hidden_size=64"],
             "golden-linear": ["--preset", "tiny-linear"] + SMALL}


def make_checkpoint_without_vision(arguments):
    original = make_checkpoint.tiny_k3
    make_checkpoint.tiny_k3 = lambda: {k: v for k, v in original().items() if k != "vision_config"}
    sys.argv = ["make_checkpoint.py"] + arguments
    make_checkpoint.main()
    make_checkpoint.tiny_k3 = original
    for name in ("tiktoken.model", "tokenizer_config.json"):
        os.remove(os.path.join(arguments[1], name))


def draw(model, rng, length):
    """Tokens whose routing is nowhere a near tie, and their logits and state."""
    while True:
        tokens, trace = rng.integers(0, model.cfg.vocab, length), {}
        logits, state = model.forward(tokens, trace=trace)
        if golden.min_gap(trace, length).min() >= MIN_GAP:
            return tokens, logits, state


def quick(path, lengths, seed):
    model, rng, tensors = k3_oracle.Model(path), np.random.default_rng(seed), {}
    for length in lengths:
        tokens, logits, state = draw(model, rng, length)
        top = np.sort(logits, 1)
        first = int(logits[-1].argmax())
        ids, margins, _, _ = model.greedy([first], 7, state)
        case = dict(tokens=tokens.astype(np.int32), positions=np.arange(length, dtype=np.int32),
                    logits=logits.astype(np.float32), greedy=np.array([first] + ids, np.int32),
                    greedy_margin=np.array([top[-1, -1] - top[-1, -2]] + margins, np.float32))
        tensors.update({f"len{length}.{key}": value for key, value in case.items()})
    k3_oracle.save_safetensors(os.path.join(path, "golden.safetensors"), tensors)


def full(path, seed):
    g = golden.Golden(path)
    g.run(seed)
    k3_oracle.save_safetensors(os.path.join(path, "golden.safetensors"), g.t)


def committed():
    here = os.path.dirname(os.path.abspath(__file__))
    for name, arguments in COMMITTED.items():
        arguments = sum(([a] if a.startswith("--") or "=" not in a else ["--set", a] for a in arguments), [])
        subprocess.run([sys.executable, __file__, os.path.join(here, name)] + arguments, check=True)


def main():
    arguments = sys.argv[1:]
    if arguments == ["--committed"]:
        return committed()

    def take(flag, default):
        if flag not in arguments:
            return default
        at = arguments.index(flag)
        value = arguments[at + 1]
        del arguments[at:at + 2]
        return value
    lengths, seed = take("--quick", None), int(take("--golden-seed", 1234))
    out = arguments.pop(0)
    make_checkpoint_without_vision(["--out", out] + arguments)
    if lengths:
        quick(out, [int(n) for n in lengths.split(",")], seed)
    else:
        full(out, seed)


if __name__ == "__main__":
    main()
