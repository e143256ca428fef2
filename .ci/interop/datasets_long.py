#!/usr/bin/env python3
"""Thousands of datasets, one ingest each: what a commit costs must not grow with the lake. `datasets_long.py [N]`, by default 2000."""
import json
import pathlib
import resource
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from peer import check, done, trawl, trawl_json

N = int(sys.argv[1]) if len(sys.argv) > 1 else 2000


def cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def metadata():
    """Bytes of manifests, checkpoints, dataset commits, heartbeats and deny records, without a collection."""
    dirs = ["lake/index/manifests", "lake/index/checkpoints", "lake/index/heartbeats", "lake/index/deny", "lake/datasets"]
    return sum(path.stat().st_size for name in dirs for path in pathlib.Path(name).rglob("*.json*") if path.is_file())


marks = {}
begun = time.monotonic()
for n in range(1, N + 1):
    pathlib.Path("list.txt").write_text("".join(f"https://www.site{(n * 7 + i) % 900}.example{i % 20}.org/{n}/{i}\n" for i in range(60)))
    trawl("lake", "ingest", "--dataset", f"dataset-{n}", "list.txt", "-q")
    if n in (20, 120, N - 100, N):
        marks[n] = (cpu(), metadata())
early = [b - a for a, b in zip(marks[20], marks[120])]
late = [b - a for a, b in zip(marks[N - 100], marks[N])]
total = marks[N][1]
print(f"    ingests 21-120: {early[0]:.1f} s CPU, {early[1]:,} bytes of metadata; {N - 99}-{N}: {late[0]:.1f} s, {late[1]:,}; in all {total:,} bytes, {time.monotonic() - begun:.0f} s")
stats = trawl_json("lake", "stats")[0]
print(f"    lake stats: {stats['metadata_bytes']:,} bytes of metadata in {stats['metadata_objects']:,} objects")
check(stats["datasets"] == N and stats["rows"] == 60 * N, "every row is there")
check(total <= 40_000_000 * N / 2000, f"metadata takes {total:,} bytes")
check(late[1] <= 1.5 * early[1], f"bytes of the last hundred: {late[1] / early[1]:.2f} times those of the first")
check(late[0] <= 1.5 * early[0], f"CPU of the last hundred: {late[0] / early[0]:.2f} times that of the first")
state = json.loads(pathlib.Path("lake/index/manifest.json").read_text())
base = state.get("base", {}).get("bytes", 0)
print(f"    to open the lake: a manifest of {pathlib.Path('lake/index/manifest.json').stat().st_size:,} bytes and a checkpoint of {base:,}")
before = sum(1 for path in pathlib.Path("lake").rglob("*") if path.is_dir())
trawl("lake", "gc", "--keep-versions", 1, "--grace", "0s", "--yes", "-q")
empty = [path for path in pathlib.Path("lake").rglob("*") if path.is_dir() and not any(path.iterdir()) and path.name != "tmp"]
check(not empty, f"gc leaves no empty directory: {before} before, {empty[:3]}")
trawl("lake", "verify", "-q")
print(f"    after gc {metadata():,} bytes of metadata")
done()
