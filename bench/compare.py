#!/usr/bin/env python3
"""Two builds of `trawl` side by side: what a change of the code costs or saves.

    bench/compare.py BEFORE AFTER [--rounds 3] [--pages 6000] [--urls 3000000] [--warc-mb 1024]

Runs the same work with both binaries, in turns, and prints the CPU seconds (user + system) of each and their ratio:
a crawl of the synthetic web, an ingest of a URL list, an ingest of one WARC with one and with two threads, and lookups
in the lake that each build made. CPU time is what a shared machine leaves comparable; wall time is shown where the
question is about threads.
"""
import argparse
import gzip
import hashlib
import json
import os
import pathlib
import random
import resource
import shutil
import subprocess
import tempfile
import time


def timed(command):
    """(CPU seconds, wall seconds) of a command; its failure is ours."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def median(values):
    return sorted(values)[len(values) // 2]


def url_list(path, count):
    rng = random.Random(7)
    with open(path, "w") as out:
        for n in range(count):
            # About 50 URLs a domain, most of them on a few: the shape of a crawl's list.
            domain = int(rng.paretovariate(0.7)) % max(1, count // 50)
            out.write(f"https://www.d{domain}.example/section/{rng.randrange(1000)}/page-{n}.html?id={rng.randrange(10**6)}\n")


def warc(path, megabytes):
    """One WARC of about this size, a gzip member a record, with bodies that do not compress well."""
    rng = random.Random(11)
    written, n = 0, 0
    with open(path, "wb") as out:
        while written < megabytes << 20:
            body = rng.randbytes(rng.randrange(2_000, 60_000))
            http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            head = (
                "WARC/1.1\r\nWARC-Type: response\r\n"
                f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{n:012x}>\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
                f"WARC-Target-URI: https://h{n % 5000}.example/p/{n}\r\nContent-Type: application/http; msgtype=response\r\n"
                f"WARC-Payload-Digest: sha1:{hashlib.sha1(body).hexdigest()}\r\nContent-Length: {len(http)}\r\n\r\n"
            )
            written += out.write(gzip.compress(head.encode() + http + b"\r\n\r\n", 1))
            n += 1


class TestWeb:
    def __init__(self, binary, work, pages):
        self.seeds = work / "seeds.txt"
        command = [binary, "testweb", "--pages", str(pages), "--domains", "400", "--seeds-file", self.seeds, "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        facts = json.loads(self.process.stdout.readline())
        self.address = facts.get("address") or facts.get("listen") or facts["addresses"][0]

    def stop(self):
        self.process.terminate()
        self.process.wait()


def compare(name, rounds, run, builds):
    """Runs `run(binary)` in turns, so that what else the machine does hits both alike."""
    results = {build: [] for build in builds}
    for _ in range(rounds):
        for build in builds:
            results[build].append(run(builds[build]))
    cpu = {build: median([r[0] for r in results[build]]) for build in builds}
    wall = {build: median([r[1] for r in results[build]]) for build in builds}
    print(f"{name:44} cpu s: before {cpu['before']:8.2f}  after {cpu['after']:8.2f}  ratio {cpu['after'] / cpu['before']:.3f}"
          f"   wall s: {wall['before']:.2f} / {wall['after']:.2f}", flush=True)
    return cpu, wall


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=6000)
    parser.add_argument("--urls", type=int, default=3_000_000)
    parser.add_argument("--warc-mb", type=int, default=1024)
    parser.add_argument("--lookups", type=int, default=300)
    options = parser.parse_args()
    builds = {"before": os.path.abspath(options.before), "after": os.path.abspath(options.after)}
    work = pathlib.Path(tempfile.mkdtemp(prefix="trawl-compare-"))
    try:
        web = TestWeb(builds["before"], work, options.pages)
        try:
            def crawl(binary):
                out = work / "crawl"
                shutil.rmtree(out, ignore_errors=True)
                return timed([binary, "crawl", web.seeds, "--out", out, "--depth", "3", "--scope", "any", "--delay", "1ms",
                              "--per-ip", "0", "--ignore-robots", "--quiet", "--connect-to", f"::{web.address}"])
            cpu, _ = compare("crawl of the synthetic web", options.rounds, crawl, builds)
            report = json.loads((work / "crawl" / "run.json").read_text())
            captures = report["counts"]["captures"]
            print(f"{'':44} {captures} captures: {1e3 * cpu['before'] / captures:.3f} / {1e3 * cpu['after'] / captures:.3f} ms CPU each")
        finally:
            web.stop()

        lines = work / "urls.txt"
        url_list(lines, options.urls)

        def lake_of(binary):
            """Each build has a lake of its own: a newer one may lay it out in another way."""
            return work / ("lake-before" if binary == builds["before"] else "lake-after")

        def ingest(source, threads):
            def run(binary):
                lake = lake_of(binary)
                shutil.rmtree(lake, ignore_errors=True)
                return timed([binary, "lake", "ingest", "--lake", lake, "--dataset", "d", "--threads", str(threads), "--quiet", source])
            return run

        compare(f"ingest and publish {options.urls} URLs, 2 threads", options.rounds, ingest(lines, 2), builds)
        # The lakes of the last round answer the lookups.
        names = [f"d{n % max(1, options.urls // 50)}.example" for n in range(options.lookups)]

        def lookups(binary):
            total = [0.0, 0.0]
            for name in names:
                cpu, wall = timed([binary, "query", "domain", name, "--lake", lake_of(binary), "--json"])
                total[0] += cpu
                total[1] += wall
            return tuple(total)
        compare(f"{options.lookups} domain lookups, a process each", options.rounds, lookups, builds)

        archive = work / "one.warc.gz"
        warc(archive, options.warc_mb)
        one = compare(f"ingest one WARC of {options.warc_mb} MiB, 1 thread", options.rounds, ingest(archive, 1), builds)
        two = compare(f"ingest one WARC of {options.warc_mb} MiB, 2 threads", options.rounds, ingest(archive, 2), builds)
        for build in builds:
            print(f"two threads over one, wall, {build}: {one[1][build] / two[1][build]:.2f}x")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
