#!/usr/bin/env python3
"""A server over LOAD_URLS (default 20 million) URLs under load: open loop at 1000 a second, at three times what it can take, and
closed loop. Wants TRAWL and LOAD, the binaries; prints every figure, fails where one is not met."""
import json
import os
import pathlib
import random
import subprocess
import sys
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from peer import check, done, trawl
from served import serve

URLS = int(os.environ.get("LOAD_URLS", 20_000_000))
SECONDS = int(os.environ.get("LOAD_SECONDS", 600))
DOMAINS = max(1000, URLS // 100)

if not pathlib.Path("lake").exists():
    chance = random.Random(7)
    with open("urls.txt", "w") as out:
        written = 0
        rank = 0
        while written < URLS:
            rank += 1
            # Zipf sizes: the first domain has about a fifteenth of all.
            for n in range(max(1, min(URLS // 15 // rank, URLS - written))):
                out.write(f"https://www.site{rank % DOMAINS}.example/{chance.getrandbits(32):x}/page-{n}?id={n}\n")
                written += 1
    trawl("-q", "lake", "ingest", "--lake", "lake", "--dataset", "load", "urls.txt")
    pathlib.Path("urls.txt").unlink()
with open("names.txt", "w") as out:
    for rank in range(1, DOMAINS):
        out.write(f"site{rank}.example\t1\n")


def load(at, rate, seconds, *kind):
    text = subprocess.run([os.environ["LOAD"], at.removeprefix("http://"), "names.txt", str(rate), str(seconds), *kind],
                          capture_output=True, text=True, check=True).stdout
    found = {line["kind"]: line for line in map(json.loads, text.splitlines())}
    for line in found.values():
        print(f"    {rate or 'closed'} {line}", flush=True)
    return found


def memory(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("RssAnon")).split()[1])


with serve() as at:
    with urllib.request.urlopen(f"{at}/v1/stats") as answer:
        print(f"    {json.load(answer)}")
    load(at, 1000, 30)
    before = memory(serve.pid)
    found = load(at, 1000, SECONDS)
    after = memory(serve.pid)
    failed = {kind: line["statuses"] for kind, line in found.items() if set(line["statuses"]) != {"200"}}
    check(not failed, f"{SECONDS} s at 1000 a second without an error", failed)
    base = found["healthz"]["p99_ms"]
    check(found["domain"]["p99_ms"] <= base + 3, "p99 of a domain is at most 3 ms above that of /healthz", (found["domain"]["p99_ms"], base))
    check(found["page100"]["p99_ms"] <= base + 20, "p99 of a page of 100 is at most 20 ms above it", (found["page100"]["p99_ms"], base))
    check(after <= before * 1.2 + 20_000, "memory is flat", (before, after))
    fast = load(at, 0, 30, "domain")["domain"]
    pages = load(at, 0, 30, "page1000")["page1000"]
    check(pages["per_second"] >= 3 * 284, "1000-row pages, three times as many as before", pages["per_second"])
    flood = load(at, 3 * int(fast["per_second"]), 30)
    for line in flood.values():
        check(set(line["statuses"]) <= {"200", "503"}, "past all it can take, answers or 503", line)
        check(line["max_ms"] < 35_000, "and nothing waits without bound", line)
done()
