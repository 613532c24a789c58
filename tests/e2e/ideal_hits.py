#!/usr/bin/env python3
"""What an unbounded cache of prompt blocks would hit: ideal_hits.py FILE... prints a JSON object.

For traces of block ids: Mooncake jsonl, kv-cache-tester json, kv-cache-tester tree csv; plain or .gz.
No tree of prefixes here: of all earlier prompts, a neighbour in sorted order shares most.
"""
import bisect
import csv
import gzip
import json
import sys


def prompts(path):
    """Yields (scope, block ids) of each request: prompts of different scopes share nothing."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        if file.read(1) != "{":
            file.seek(0)
            for row in csv.DictReader(file):
                known = [] if row["req"] == "0" else known
                old = known[int(row["lcp_req"])][:int(row["lcp_blocks"])] if row["lcp_req"] != "-1" else []
                known.append(old + [(row["req"], i) for i in range(len(old), int(row["n_blocks"]))])
                yield row["trace"], known[-1]
            return
        file.seek(0)
        rows = [json.loads(line) for line in file]
        for entry in rows[0]["requests"] if "requests" in rows[0] else rows:
            for request in entry.get("requests", [entry]):  # a sub-agent has its own
                yield path if "requests" in rows[0] else "", request["hash_ids"]


def common(a, b):
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low


earlier = {}
found = {"requests": 0, "blocks": 0, "ideal_hit_blocks": 0, "cold": 0}
for scope, prompt in (item for path in sys.argv[1:] for item in prompts(path)):
    known = earlier.setdefault(scope, [])
    at = bisect.bisect(known, prompt)
    shared = max((common(prompt, near) for near in known[max(at - 1, 0):at + 1]), default=0)
    known.insert(at, prompt)
    for name, count in (("requests", 1), ("blocks", len(prompt)), ("ideal_hit_blocks", shared), ("cold", shared == 0)):
        found[name] += count
found["scopes"] = len(earlier)
print(json.dumps(found))
