#!/usr/bin/env python3
"""A crawl of many hosts, each domain at an address of its own, judged by the server's log: polite, complete, each page once, every fault under
its own name. Then the same web with CRAWL_KILLS SIGKILLs, one every few seconds, and --resume: the same captures.

CRAWL_DOMAINS (default 2,200; ten times as many in `.ci/long crawl`) sets the size: about ten pages a domain."""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import duckdb
from peer import TRAWL, check, done, run, testweb, trawl

DOMAINS = int(os.environ.get("CRAWL_DOMAINS", "2200"))
KILLS, KILL_EVERY = int(os.environ.get("CRAWL_KILLS", "8")), float(os.environ.get("CRAWL_KILL_EVERY", "4"))
DEPTH, DELAY_MS = 60, 50

# What an ordinary day brings, without pages that change; crawl delays of 1 to 2 s for about 50 hosts, which are small.
shares = dict(RobotsMissing=150, RobotsForbidden=15, RobotsPartial=150, RobotsWildcard=60, RobotsOdd=40, RobotsBom=20, RobotsRedirect=20,
              RobotsClosed=15, RobotsError=5, RobotsHtml=10, RobotsDelay=max(2, 50_000 // (DOMAINS * 23 // 20)), Https=100, Http2=400,
              CertSelfSigned=10, CertExpired=10, Closing=50, CalendarTrap=5, SessionTrap=5, FacetTrap=5, SoftNotFound=30, Redirect=20,
              RedirectAway=10, RedirectChain=5, RedirectLoop=2, Gone=5, ServerError=2, Busy=2, Unavailable=2, ResetBody=2, ShortBody=2, HangUp=3,
              Gzip=400, Brotli=100, Zstd=50, Chunked=300, LegacyCharset=30, Duplicate=20, NoFollow=20, BrokenLink=20, OddSpelling=100)
snake = lambda name: "".join("-" + c.lower() if c.isupper() else c for c in name).lstrip("-")
web_settings = dict(seed=21, domains=DOMAINS, pages=10 * DOMAINS, zipf=0.7, max_pages_per_host=500, max_pages_of_delayed=12, seeds=max(8, DOMAINS // 10),
                    min_page_bytes=800, max_page_bytes=12_000, min_crawl_delay_ms=1000, max_crawl_delay_ms=2000, throttle_ms=5, slow_ms=300,
                    threads=1, shares={snake(k): v for k, v in shares.items()})
pathlib.Path("web.json").write_text(json.dumps(web_settings))
# Of a shop with five filters of six values each, pages with one (30) or two (360) filters are pages; of the 15,625 others the crawl
# takes 16, by which it knows the trap.
TRAP_BUDGET = 30 + 360 + 16
judge_settings = dict(trap_budget=TRAP_BUDGET, retries=5, max_redirects=10, robots_min_age_s=0, tolerance_ms=20, notice_ms=2000, ip_in_flight=8)
pathlib.Path("judge.json").write_text(json.dumps(judge_settings))


def command(web, out):
    port = web["connect_to"].rsplit(":", 1)[1]
    return [TRAWL, "--quiet", "crawl", "seeds.txt", "--out", out, "--depth", str(DEPTH), "--scope", "any", "--delay", f"{DELAY_MS}ms",
            "--connect-to", f":::{port}", "--resolver", web["names"], "--allow-private", "*", "--workers", "256", "--backoff", "1s",
            "--max-attempts", "6", "--give-up-after", "20s", "--wait", "60s", "--first-byte-timeout", "10s", "--idle-timeout", "10s",
            "--timeout", "60s", "--frontier-memory", "64MiB", "--max-crawl-delay", "5m"]


def captures(out):
    """URL and last status of every page that had an answer; and rows that are there twice."""
    rows = f"'{out}/captures.parquet'"
    pages = f"select * from {rows} where robots is not null and error_class is null"
    last = duckdb.sql(f"select url, max_by(status, attempt) from ({pages}) group by url").fetchall()
    twice = duckdb.sql(f"select count(*) from (select url, attempt from ({pages}) group by all having count(*) > 1)").fetchall()[0][0]
    return {url: status for url, status in last}, twice


def judged(log, depth):
    args = [TRAWL, "--json", "testweb", "judge", log, "--web", "web.json", "--depth", str(depth), "--delay", f"{DELAY_MS}ms", "--settings", "judge.json"]
    return json.loads(subprocess.run(args, capture_output=True, text=True).stdout)


WEB = ["--web", "web.json", "--many-addresses", "--seeds-file", "seeds.txt"]
begun = time.monotonic()
with testweb(*WEB, "--log", "web.log") as web:
    whole = subprocess.run(command(web, "whole"), capture_output=True, text=True)
took = time.monotonic() - begun
report = json.loads(pathlib.Path("whole/run.json").read_text())
counts = report["counts"]
print(f"{web['hosts']} hosts, {web['pages']} pages; {counts['captures']} captures in {took:.0f} s, {counts['captures'] / took:.0f}/s; {counts['failures']}")
check(whole.returncode in (0, 1) and report["complete"], "the crawl is complete", whole.stderr[-500:])
urls = report["urls"]
check(sum(urls[k] for k in ("fetched", "failed", "excluded", "rejected", "waiting")) == urls["offered"], "every URL that was offered is accounted for", urls)
verdict = judged("web.log", DEPTH)
check(verdict["expected"] >= 6 * DOMAINS and verdict["fetched"] == verdict["expected"], f"all of {verdict['expected']} URLs were asked for")
check(verdict["clean"], "the judge finds nothing", f"{verdict['counts']} {verdict['violations'][:5]} {verdict['faults'][:3]}")
pages, twice = captures("whole")
check(twice == 0, "no attempt is recorded twice")
classes = set(counts["failures"])
check({"robots_denied", "robots_unavailable", "reset"} <= classes, "faults have classes of their own", classes)
check(not {"local_resource"} & classes, "no trouble of ours counts against a host", classes)
dead = [json.loads(line) for line in open("whole/hosts.jsonl")]
dead = [host["host"] for host in dead if host["given_up"] and host["crawled"]]
check(not dead, "no host that answered was given up", dead[:3])
trawl("verify", "whole", "--quiet")
check(len(open("whole/crawl.log").readlines()) == counts["captures"], "crawl.log has a line for each capture")

# The same with kills.
rng, kills = random.Random(21), 0
with testweb(*WEB, "--log", "killed.log") as web:
    while True:
        process = subprocess.Popen(command(web, "killed") + ["--resume"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            process.wait(timeout=KILL_EVERY * (0.5 + rng.random()) if kills < KILLS else None)
            check(process.returncode in (0, 1), "the resumed crawl ends", process.stderr.read().decode()[-500:])
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
again, twice = captures("killed")
check(kills >= 3, f"killed {kills} times")
check(twice == 0, "no attempt is recorded twice")
# Which pages of a trap a crawl takes before it knows the trap depends on their order; the judge counts them.
in_trap = re.compile(r"[?&]sid=s1x|/catalog/filter\?|/calendar/\d")
pages, again = ({url: status for url, status in found.items() if not in_trap.search(url)} for found in (pages, again))
lost, more = sorted(set(pages) - set(again)), sorted(set(again) - set(pages))
check(not lost and not more, f"the same {len(pages)} pages", f"lost {len(lost)} {lost[:3]}, more {len(more)} {more[:3]}")
differ = [url for url in pages if pages[url] != again[url]]
check(not differ, "with the same status", [(url, pages[url], again[url]) for url in differ[:5]])
trawl("verify", "killed", "--quiet")
check(len(open("killed/crawl.log").readlines()) == json.loads(pathlib.Path("killed/run.json").read_text())["counts"]["captures"],
      "crawl.log has a line for each capture")
# Captures that a kill took with it were fetched again: that is no breach. Politeness and robots.txt hold all the same.
verdict = judged("killed.log", DEPTH)
breaches = {kind: n for kind, n in verdict["counts"].items() if kind in ("host-concurrency", "host-spacing", "crawl-delay", "ip-concurrency",
            "robots-not-fetched", "robots-disallowed", "robots-unreachable", "trap-overrun", "never-fetched")}
check(not breaches, "and polite all along", f"{breaches} {[v for v in verdict['violations'] if v['kind'] in breaches][:5]}")
done()
