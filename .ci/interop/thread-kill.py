#!/usr/bin/env python3
"""A crawl killed twenty times (SIGKILL) and resumed: every page is archived exactly once, and the archive is sound."""
import glob
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import duckdb
from peer import TRAWL, check, done, lines, run, testweb, trawl, trawl_json

KILLS, DEPTH = 20, 12
rng = random.Random(20)
with testweb("--domains", 80, "--pages", 1500, "--latency", 10, "--seeds-file", "seeds.txt", "--expected-file", "expected.txt",
             "--depth", DEPTH) as web:
    command = [TRAWL, "--quiet", "crawl", "seeds.txt", "--out", "crawl", "--depth", str(DEPTH), "--scope", "any", "--delay", "40ms",
               "--connect-to", web["connect_to"]]
    kills, seen = 0, []
    while kills < KILLS:
        resume = ["--resume"] if kills else []
        process = subprocess.Popen(command + resume, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            process.wait(timeout=0.15 + rng.random() * 0.25)
            error = process.stderr.read().decode()
            check(process.returncode == 0, "a crawl that ended before it was killed succeeded", error)
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            seen.append(sum(pathlib.Path(p).stat().st_size for p in glob.glob("crawl/**/*.open", recursive=True)))
    check(kills == KILLS, f"killed {kills} times", seen)
    check(len({size for size in seen if size}) > 3, "the kills came while the archive grew", seen)
    run(*command, "--resume")

expected = sorted(lines("expected.txt"))
got = duckdb.sql("select url from 'crawl/captures.parquet' where error = '' and url not like '%/robots.txt'").fetchall()
check(sorted(url for url, in got) == expected, f"each of {len(expected)} pages is recorded exactly once",
      f"{len(got)} rows, {len(set(got))} of them different")
run("warcio", "check", *glob.glob("crawl/*.warc.gz"))
check(not glob.glob("crawl/**/*.open", recursive=True), "no file is left open")
trawl("verify", "crawl", "--quiet")
check(True, "warcio check and trawl verify find nothing wrong")
done()
