#!/usr/bin/env python3
"""Counts, from a trace file alone, how many blocks of each prompt need not be computed again when nothing is ever
evicted and requests come one after another. The rule of checkpoints (README, "The life of a recurrent state"): a
prompt saves its state where the cache asked for a branch (the end of the KV it found), at the last block boundary
before its last token, and at its very end if that is a boundary; decoding keeps the newest boundary it passed. Two
slots take them, in this order. Prints one number per request. Usage: usable_hits.py FILE"""
import csv, gzip, io, json, sys

def rows(path):
    """(scope, time, block ids, block size, input tokens, output tokens) of each request."""
    data = open(path, "rb").read()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
    if text.startswith("trace,"):
        prompts = {}
        for r in csv.DictReader(io.StringIO(text)):
            name, req, n, lcp = r["trace"], int(r["req"]), int(r["n_blocks"]), int(r["lcp_blocks"])
            ids = prompts[name, int(r["lcp_req"])][:lcp] if lcp else []
            prompts[name, req] = ids + [(req, i) for i in range(lcp, n)]
            yield name, float(r["t"] or 0), prompts[name, req], 64, int(r["in"]), int(r["out"])
    else:
        for line in text.splitlines():
            r = json.loads(line)
            yield "", r["timestamp"], r["hash_ids"], 512, r["input_length"], r["output_length"]

def usable(requests):
    trees = {}  # of a scope: block id -> [children, has a checkpoint, has KV]
    for scope, _, ids, size, inputs, outputs in requests:
        prompt = max(inputs, len(ids) * size)  # a partial last block counts as a whole one
        life = prompt + max(outputs, 1) - 1    # positions computed
        root = trees.setdefault(scope, {})
        path, at = [], root
        for block in ids:
            path.append(at.setdefault(block, [{}, False, False]))
            at = path[-1][0]
        kv = next((i for i, node in enumerate(path) if not node[2]), len(path))
        last = (prompt - 1) // size
        found = max((i + 1 for i in range(min(kv, last)) if path[i][1]), default=0)
        slots = min(life // size, 2)
        branch = min(kv, last)
        wanted = [branch] if branch > found else []
        if last > found and last not in wanted:
            wanted.append(last)
        saved = wanted[:slots]
        # Decoding passes boundaries too; only the newest one lasts, and only one at the prompt's end is ever shared.
        if prompt % size == 0 and life // size == prompt // size and life > prompt and len(wanted) < slots:
            saved.append(prompt // size)
        for blocks in saved:
            if blocks > 0:
                path[blocks - 1][1] = True
        deepest = max(saved + [found, life // size if life // size > last and slots else 0])
        for node in path[:deepest]:
            node[2] = True
        yield found

if __name__ == "__main__":
    # Stable: ties stay in the file's order. Sessions of an agent trace share nothing, so their order is irrelevant.
    for blocks in usable(sorted(rows(sys.argv[1]), key=lambda r: (r[0], r[1]))):
        print(blocks)
