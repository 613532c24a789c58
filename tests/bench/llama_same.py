#!/usr/bin/env python3
"""Whether llama.cpp computes the same model: scores of token sequences, ours beside its own.

    llama_same.py --scores ./llama_scores --serve build/release/bin/sluice-serve \\
        --pair MODEL_DIR=FILE.gguf [--pair ...] [--seed N]

Sequences of random ids, and our greedy continuation of one of them. With a file in F32 the two
agree to some 1e-5; with F16 or MXFP4 llama.cpp rounds activations too, and a router of random
weights near a tie then picks another expert: such a row differs, and those after it.
"""
import argparse
import json
import random
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from llama_compare import model_and_file

LENGTHS = (24, 100, 300)
CONTINUED = 64  # tokens
START_SECONDS = 30


class Server:
    """Our server on a free port, for the time of a with block."""

    def __init__(self, binary, model):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        self.process = subprocess.Popen(
            [binary, "--model", model, "--port", self.url.rsplit(":", 1)[1], "--admin-socket",
             "none"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        give_up = time.monotonic() + START_SECONDS
        while True:
            try:
                urllib.request.urlopen(self.url + "/health").read()
                return self
            except (urllib.error.URLError, ConnectionError):
                if self.process.poll() is not None or time.monotonic() > give_up:
                    self.__exit__()
                    sys.exit("sluice-serve did not start")
                time.sleep(0.05)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def complete(self, ids, **fields):
        request = urllib.request.Request(
            self.url + "/v1/completions", json.dumps({"prompt": ids, **fields}).encode(),
            {"Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(request))["choices"][0]

    def scores(self, ids):
        """(argmax, log-probability of the next id) after each id but the last."""
        answer = self.complete(ids, echo=True, max_tokens=0, logprobs=1,
                               return_tokens_as_token_ids=True)["logprobs"]
        best = [max(top, key=top.get).split(":")[1] for top in answer["top_logprobs"][1:]]
        return [(int(a), b) for a, b in zip(best, answer["token_logprobs"][1:])]


def compare(options, model, gguf):
    with open(model + "/config.json", encoding="utf-8") as file:
        config = json.load(file)
    vocabulary = config.get("text_config", config)["vocab_size"]
    rng = random.Random(options.seed)
    sequences = [[rng.randrange(vocabulary) for _ in range(length)] for length in LENGTHS]
    with Server(options.serve, model) as server:
        greedy = server.complete(sequences[0], max_tokens=CONTINUED, temperature=0,
                                 ignore_eos=True, return_token_ids=True)["token_ids"]
        sequences.append(sequences[0] + greedy)
        ours = [server.scores(ids) for ids in sequences]
    lines = "\n".join(" ".join(map(str, ids)) for ids in sequences)
    done = subprocess.run([options.scores, gguf], input=lines + "\n", capture_output=True,
                          text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    print(f"{model} and {gguf}")
    for ids, mine, line in zip(sequences, ours, done.stdout.splitlines()):
        other = [(int(a), float(b)) for a, b in (field.split(":") for field in line.split())]
        same = sum(a[0] == b[0] for a, b in zip(mine, other))
        apart = max(abs(a[1] - b[1]) for a, b in zip(mine, other))
        print(f"  {len(ids):4} tokens: same argmax {same} of {len(mine)}, log-probabilities at most "
              f"{apart:.6f} apart, mean {sum(b for _, b in mine) / len(mine):.5f} and "
              f"{sum(b for _, b in other) / len(other):.5f}")
    continued = [a for a, _ in other][len(sequences[0]) - 1:]
    print(f"  greedy continuation: {sum(a == b for a, b in zip(greedy, continued))} of {CONTINUED}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scores", required=True, help="llama_scores.cpp, built")
    parser.add_argument("--serve", required=True, help="our sluice-serve")
    parser.add_argument("--pair", type=model_and_file, action="append", required=True,
                        metavar="MODEL_DIR=FILE.gguf")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for model, gguf in options.pair:
        compare(options, model, gguf)


if __name__ == "__main__":
    main()
