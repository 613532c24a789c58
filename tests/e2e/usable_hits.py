#!/usr/bin/env python3
"""Counts, from a trace file alone, how many blocks of each prompt need not be computed again when nothing is ever
evicted and requests come one after another. The rule of checkpoints (README, "The life of a recurrent state"): a
prompt saves its state where the cache asked for a branch (the end of the KV it found) and at the last block boundary
before its last token; what decoding saves lies in answers, which no other prompt goes on with. A partial last block
counts as a whole one, and every answer passes a boundary. Prints one number per request. Usage:
usable_hits.py MOONCAKE_JSONL"""
import gzip
import json
import sys

BLOCK = 512  # tokens, of a Mooncake trace


def rows(path):
    """(time, block ids, input tokens) of each request."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        for line in file:
            request = json.loads(line)
            yield request["timestamp"], request["hash_ids"], request["input_length"]

def usable(requests):
    tree = {}  # block id -> [children, has a checkpoint, has KV]
    for _, ids, tokens in requests:
        last = (max(tokens, len(ids) * BLOCK) - 1) // BLOCK
        path, at = [], tree
        for block in ids:
            path.append(at.setdefault(block, [{}, False, False]))
            at = path[-1][0]
        kv = next((i for i, node in enumerate(path) if not node[2]), len(path))
        found = max((i + 1 for i in range(min(kv, last)) if path[i][1]), default=0)
        for saved in {kv, last}:
            if found < saved <= last and saved <= len(path):
                path[saved - 1][1] = True
        for node in path:
            node[2] = True
        yield found

if __name__ == "__main__":
    for blocks in usable(sorted(rows(sys.argv[1]), key=lambda request: request[0])):  # ties in the file's order
        print(blocks)
