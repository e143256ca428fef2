#!/usr/bin/env python3
"""Crawls killed twenty times (SIGKILL) and resumed: every page is archived exactly once, and the archive is sound."""
import contextlib
import glob
import os
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import duckdb
from peer import TRAWL, check, done, lines, run, testweb, trawl

KILLS, DEPTH = 20, 12


def size(pattern):
    """Bytes of all files of a name; one that is renamed meanwhile counts for nothing."""
    total = 0
    for path in glob.glob(pattern):
        with contextlib.suppress(FileNotFoundError):
            total += os.stat(path).st_size
    return total


def killed(web, out, archive, *options):
    """Kills a crawl of `web` into `out` again and again, then lets it end."""
    rng = random.Random(20)
    command = [TRAWL, "--quiet", "crawl", "seeds.txt", "--out", out, "--depth", str(DEPTH), "--scope", "any", "--delay", "40ms",
               "--connect-to", web["connect_to"], *options]
    kills, seen = 0, []
    while kills < KILLS:
        resume = ["--resume"] if kills else []
        before = size(f"{out}/{archive}")
        process = subprocess.Popen(command + resume, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        # Once it got somewhere, and a moment more: how long a start takes depends on the machine.
        while size(f"{out}/{archive}") == before and process.poll() is None:
            time.sleep(0.002)
        try:
            process.wait(timeout=rng.random() * 0.2)
            error = process.stderr.read().decode()
            check(process.returncode == 0, "a crawl that ended before it was killed succeeded", error)
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            seen.append(size(f"{out}/{archive}"))
    check(kills == KILLS, f"killed {kills} times", seen)
    check(len({size for size in seen if size}) > 3, "the kills came while the archive grew", seen)
    run(*command, "--resume")
    expected = sorted(lines("expected.txt"))
    got = duckdb.sql(f"select url from '{out}/captures.parquet' where error = '' and url not like '%/robots.txt'").fetchall()
    check(sorted(url for url, in got) == expected, f"each of {len(expected)} pages is recorded exactly once",
          f"{len(got)} rows, {len(set(got))} of them different")
    check(not glob.glob(f"{out}/**/*.open", recursive=True), "no file is left open")
    trawl("verify", out, "--quiet")


with testweb("--domains", 80, "--pages", 1500, "--latency", 10, "--seeds-file", "seeds.txt", "--expected-file", "expected.txt",
             "--depth", DEPTH) as web:
    killed(web, "crawl", "*.open")
    run("warcio", "check", *glob.glob("crawl/*.warc.gz"))
    check(True, "warcio check and trawl verify find nothing wrong with the WARC files")
    killed(web, "pages", ".crawl/rows-00000", "--format", "seqdb", "--digests", "bodies")
    container, = glob.glob("pages/*.data")
    trawl("convert", container, "pages.warc.gz", "--quiet")
    run("warcio", "check", "pages.warc.gz")
    check(True, "nor with the container, or with the WARC file made of it")
done()
