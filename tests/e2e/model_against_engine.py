#!/usr/bin/env python3
"""Predicted against measured: plays traces made from a seed on a real server and on its model.

    model_against_engine.py --model DIR --device FILE.toml --seed N [--bin build/dev/bin] [--rounds 5]

The device file comes from `sluice-replay calibrate`. For each scenario the median over the rounds of
the mean time to the first token and of output tokens a second is printed beside the prediction; the
exit status is 1 when one is off by more than a fifth. Measure on a quiet machine: the load average
is printed.
"""
import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import urllib.request

TOLERANCE = 0.2
SCALE = 8  # a block of 512 tokens is played as one of 64


def make_trace(path, rng, requests, prompt, answer):
    """Mooncake lines; a third of the prompts begin as an earlier one does."""
    seen, next_id = [], 0
    with open(path, "w") as out:
        for _ in range(requests):
            tokens = rng.randint(*prompt)
            blocks = -(-tokens // 64)
            ids = []
            if seen and rng.random() < 1 / 3:
                other = rng.choice(seen)
                ids = other[: rng.randint(0, min(len(other), blocks))]
            while len(ids) < blocks:
                ids.append(next_id)
                next_id += 1
            seen.append(ids)
            out.write(json.dumps({
                "timestamp": 0, "input_length": tokens * SCALE, "hash_ids": ids,
                "output_length": rng.randint(*answer) * SCALE}) + "\n")


def scenarios(seed):
    rng = random.Random(seed)
    for name, clients, prompt, answer in (
            ("prompts", 1, (200, 1600), (2, 8)),
            ("answers", rng.choice((2, 3, 4)), (40, 120), (40, 100)),
            ("both", rng.choice((4, 6, 8)), (100, 1000), (20, 60))):
        yield name, clients, prompt, answer, rng.randint(24, 40), rng.randrange(1 << 30)


def start_server(program, arguments):
    server = subprocess.Popen([program, "--port", "0", *arguments], stdout=subprocess.PIPE, text=True)
    for line in server.stdout:
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if found and "is ready" in line:
            return server, f"http://127.0.0.1:{found.group(1)}"
    sys.exit("sluice-serve ended before it was ready")


def play(replay, command, scenario, *more):
    out = scenario + ".json"
    subprocess.run([replay, command, scenario, "--json", out, *more], check=True,
                   stdout=subprocess.DEVNULL)
    with open(out) as file:
        return json.load(file)


def figures(result):
    if result["finished"] != result["requests"]:
        sys.exit(f"only {result['finished']} of {result['requests']} requests finished")
    return result["ttft_s"]["mean"], result["output_tokens_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--bin", default="build/dev/bin")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    serve = os.path.join(options.bin, "sluice-serve")
    replay = os.path.join(options.bin, "sluice-replay")
    worst = 0.0
    print(f"load average {os.getloadavg()[0]:.2f}, seed {options.seed}, {options.model}")
    print(f"{'scenario':<10}{'figure':<10}{'predicted':>12}{'measured':>12}{'error':>9}   rounds")
    with tempfile.TemporaryDirectory() as directory:
        for name, clients, prompt, answer, requests, seed in scenarios(options.seed):
            trace = os.path.join(directory, name + ".jsonl")
            make_trace(trace, random.Random(seed), requests, prompt, answer)
            measured = []
            for _ in range(options.rounds):  # each with a server that has seen nothing
                server, url = start_server(serve, [
                    "--model", options.model, "--threads", options.threads, "--memory-gb", "1"])
                with urllib.request.urlopen(url + "/get_server_info") as reply:
                    info = json.load(reply)
                scenario = os.path.join(directory, name + ".toml")
                with open(scenario, "w") as file:
                    file.write(f"""name = "{name}"
seed = {seed}
[trace]
files = "{trace}"
block-tokens = 64
[pace]
mode = "closed"
concurrency = {clients}
[server]
device = "{os.path.abspath(options.device)}"
model = "{os.path.abspath(options.model)}"
layout = "TP1"
kv = "{info['kv_cache_dtype']}"
page-tokens = {info['page_size']}
chunk-tokens = {info['chunked_prefill_size']}
max-running = {info['max_running_requests']}
context-length = {info['context_length']}
kv-tokens = {info['max_total_num_tokens']}
[live]
url = "{url}"
""")
                measured.append(figures(play(replay, "live", scenario)))
                server.terminate()
                server.wait()
            predicted = figures(play(replay, "run", scenario))
            for i, (figure, unit) in enumerate((("ttft", "ms"), ("output", "tok/s"))):
                factor = 1000 if unit == "ms" else 1
                values = [round_[i] * factor for round_ in measured]
                median, model = statistics.median(values), predicted[i] * factor
                error = model / median - 1
                worst = max(worst, abs(error))
                rounds = " ".join(f"{value:.4g}" for value in values)
                print(f"{name:<10}{figure:<10}{model:>9.4g} {unit:<5}{median:>8.4g} {unit:<5}"
                      f"{error:>+7.1%}   {rounds}", flush=True)
    print(f"load average {os.getloadavg()[0]:.2f}, worst error {worst:.1%}")
    return 1 if worst > TOLERANCE else 0


if __name__ == "__main__":
    sys.exit(main())
