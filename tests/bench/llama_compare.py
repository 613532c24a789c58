#!/usr/bin/env python3
"""Speed beside llama.cpp on the same weights: interleaved pairs, ratio of the bests.

    llama_compare.py --llama BUILD/bin --serve build/release/bin/sluice-serve \\
        --pair MODEL_DIR=FILE.gguf [--pair ...] [--goals prefill=1.2,decode_1=1.3,decode_16=2.2]

A pair is one point on our server's --bench and on llama-bench (llama-batched-bench for several
sequences), one after the other; every second pair begins with llama.cpp. Both report the best of a
few passes of about the same length. --before 'chrt -f 50' puts a command before each measurement.
Goals hold for the --pair before them; a point that misses its goal makes the exit status 1.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys

PREFILL_PASSES = 1
DECODE_PASSES = 5
DECODE_TOKENS = 4  # of a pass, a sequence
PROMPT = 16        # tokens before the decoded ones where several sequences run


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}\nended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def ours(options, model, point):
    passes = PREFILL_PASSES if point.startswith("prefill") else DECODE_PASSES
    text = run(options.before + [
        options.serve, "--bench", "--json", "--model", model, "--threads", str(options.threads),
        "--bench-points", point, "--bench-repeat", str(passes)])
    return json.loads(text)[point]


def theirs(options, gguf, point):
    kind, count = point.split("_")
    common = ["-m", gguf, "-t", str(options.threads)]
    if kind == "decode" and count != "1":
        per_sequence = PROMPT + DECODE_TOKENS
        text = run(options.before + [
            os.path.join(options.llama, "llama-batched-bench"), *common, "-c",
            str(int(count) * max(per_sequence, 256)), "-npp", str(PROMPT), "-ntg",
            str(DECODE_TOKENS), "-npl", ",".join([count] * DECODE_PASSES), "--output-format",
            "jsonl"])
        passes = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return max(entry["speed_tg"] for entry in passes)
    prefill = kind == "prefill"
    text = run(options.before + [
        os.path.join(options.llama, "llama-bench"), *common, "-p", count if prefill else "0", "-n",
        "0" if prefill else str(DECODE_TOKENS), "-r",
        str(PREFILL_PASSES if prefill else DECODE_PASSES), "-o", "json"])
    return max(speed for test in json.loads(text) for speed in test["samples_ts"])


def model_and_file(text):
    """A --pair: (model directory, GGUF file)."""
    model, equals, gguf = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text}: expected MODEL_DIR=FILE.gguf")
    return model, gguf


def goal_of(goals, point):
    return goals.get(point, goals.get(point.split("_")[0]))


def load():
    return f"load average {os.getloadavg()[0]:.2f}"


def compare(options, model, gguf, goals):
    """Prints every pair and the table of bests; returns whether each goal is reached."""
    print(f"{model} against {gguf}, {options.threads} threads, {load()}", flush=True)
    best = {point: [0.0, 0.0] for point in options.points}
    for number in range(options.rounds):
        for point in options.points:
            sides = [lambda: ours(options, model, point), lambda: theirs(options, gguf, point)]
            speeds = [0.0, 0.0]
            for side in (0, 1) if number % 2 == 0 else (1, 0):
                speeds[side] = sides[side]()
            best[point] = [max(pair) for pair in zip(best[point], speeds)]
            print(f"  pair {number} {point:13} ours {speeds[0]:8.1f}  llama.cpp {speeds[1]:8.1f}"
                  f"  ratio {speeds[0] / speeds[1]:5.2f}  {load()}", flush=True)
    reached = True
    print(f"  {'best':20} {'ours':>8} {'llama.cpp':>10} tokens/s")
    for point, (a, b) in best.items():
        goal = goal_of(goals, point)
        note = "" if goal is None else f"  (goal {goal}{'' if a / b >= goal else ', missed'})"
        reached = reached and (goal is None or a / b >= goal)
        print(f"  {point:20} {a:8.1f} {b:10.1f}  ratio {a / b:5.2f}{note}", flush=True)
    return reached


class Goals(argparse.Action):
    """Keeps the goals beside the pair that they follow."""

    def __call__(self, parser, namespace, values, option_string=None):
        if not namespace.pair:
            parser.error("--goals stands after the --pair that it is for")
        try:
            goals = {name: float(least) for name, least in
                     (entry.split("=") for entry in values.split(","))}
        except ValueError:
            parser.error(f"--goals {values}: expected POINT=RATIO,... such as decode_1=1.3")
        namespace.goals[len(namespace.pair) - 1] = goals


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama", required=True, help="folder of llama-bench")
    parser.add_argument("--serve", required=True, help="our sluice-serve")
    parser.add_argument("--pair", type=model_and_file, action="append", required=True,
                        metavar="MODEL_DIR=FILE.gguf")
    parser.add_argument("--goals", action=Goals, default={}, metavar="POINT=RATIO,...")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--points", type=lambda text: text.split(","),
                        default=["prefill_512", "prefill_2048", "decode_1", "decode_16"])
    parser.add_argument("--before", type=shlex.split, default=[])
    options = parser.parse_args()
    reached = True
    for number, (model, gguf) in enumerate(options.pair):
        reached = compare(options, model, gguf, options.goals.get(number, {})) and reached
    sys.exit(0 if reached else 1)


if __name__ == "__main__":
    main()
