#!/usr/bin/env python3
"""A crawl that runs for SOAK_SECONDS (default an hour) over a list of two million pages of 20,000 domains, from which it also follows
links: its memory stays flat, and within --frontier-memory and 300 MiB, while two million URLs wait."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from peer import TRAWL, check, done, testweb, trawl

SECONDS = int(os.environ.get("SOAK_SECONDS", "3600"))
URLS = int(os.environ.get("SOAK_URLS", "2000000"))
FRONTIER_MIB, BESIDE_MIB = 512, 300

# A third more pages than are wanted: some of a host cannot be reached by links, and are not in the list.
pathlib.Path("web.json").write_text(json.dumps(dict(seed=32, domains=20_000, pages=URLS * 4 // 3, zipf=0.5, max_pages_per_host=20_000,
                                                    min_page_bytes=800, max_page_bytes=12_000, threads=1)))


def anonymous_mib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


with testweb("--web", "web.json", "--many-addresses", "--depth", "60", "--expected-file", "list.txt") as web:
    listed = sum(1 for _ in open("list.txt", "rb"))
    check(listed >= URLS, f"{listed} URLs are listed")
    port = web["connect_to"].rsplit(":", 1)[1]
    process = subprocess.Popen([TRAWL, "--quiet", "crawl", "list.txt", "--out", "soak", "--depth", "1", "--delay", "60s", "--max-time", f"{SECONDS}s",
                                "--frontier-memory", f"{FRONTIER_MIB}MiB", "--connect-to", f":::{port}", "--resolver", web["names"],
                                "--allow-private", "*", "--workers", "256"], stdout=subprocess.DEVNULL, stderr=open("soak.log", "w"))
    samples, begun = [], time.monotonic()
    while process.poll() is None:
        try:
            samples.append(anonymous_mib(process.pid))
        except (OSError, IndexError):  # it ended between the two calls
            break
        if len(samples) % 60 == 0:
            print(f"    {time.monotonic() - begun:.0f} s: {samples[-1]:.0f} MiB", flush=True)
        time.sleep(5)
    process.wait()

report = json.loads(pathlib.Path("soak/run.json").read_text())
print(f"{report['counts']['captures']} captures in {time.monotonic() - begun:.0f} s; {report['urls']}; {report['counts']['failures']}")
check(process.returncode in (0, 1) and not report["complete"], "the time was up, the list was not", open("soak.log").read()[-500:])
urls = report["urls"]
check(sum(urls[kind] for kind in ("fetched", "failed", "excluded", "rejected", "waiting")) == urls["offered"], "every URL is accounted for", urls)
check(max(samples) <= FRONTIER_MIB + BESIDE_MIB, f"at most {max(samples):.0f} MiB of {FRONTIER_MIB} and {BESIDE_MIB}")
third = len(samples) // 3
middle, last = statistics.mean(samples[third:2 * third]), statistics.mean(samples[2 * third:])
check(last <= middle * 1.05 + 16, f"flat: {middle:.0f} MiB in the middle third, {last:.0f} in the last")
trawl("verify", "soak", "--quiet")
done()
