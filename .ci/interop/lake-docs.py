#!/usr/bin/env python3
"""What docs/ says of a lake holds for a real one: its DuckDB queries run as printed, and every file in it is described."""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import duckdb
from docs import DOCS, blocks
from peer import TRAWL, check, done, run, trawl, trawl_json

pathlib.Path("a.txt").write_text("".join(f"http://h{i % 7}.example{i % 40}.com/{i}\n" for i in range(3000)) + "mailto:x\n")
pathlib.Path("b.txt").write_text("".join(f"http://example{i % 20}.org/{i}\n" for i in range(1000)))
pathlib.Path("c.jsonl").write_text("".join(f'{{"url":"http://example{i % 9}.com/c{i}","ts":{1_700_000_000 + i},"status":200}}\n' for i in range(500)))
trawl("lake", "ingest", "--dataset", "first", "a.txt", "-q", status=1)
trawl("lake", "ingest", "--dataset", "second", "b.txt", "-q")
trawl("lake", "ingest", "--dataset", "second", "c.jsonl", "--replace", "-q")
trawl("lake", "ingest", "--dataset", "first", "c.jsonl", "-q")
trawl("lake", "ingest", "--dataset", "gone", "b.txt", "-q")
trawl("lake", "drop", "gone", "--yes", "-q")
trawl("lake", "deny", "add", "--domain", "nobody.org", "-q")

expected = [(d["dataset_id"], d["rows"]) for d in trawl_json("lake", "datasets")]
check(expected == [(1, 3500), (2, 500)], "a lake with an appended, a replaced and a dropped dataset")
live, pattern = blocks("lake.md", "DuckDB", "sql")
os.chdir("lake")
db = duckdb.connect()
rows = db.sql(live.split(";")[0]) or db.sql(live.split(";")[1]).fetchall()
check([(d, n) for d, n, _ in rows] == expected, f"the first DuckDB query of docs/lake.md: {rows}")
os.chdir("..")
trawl("lake", "gc", "--keep-versions", 1, "--grace", "0s", "--yes", "-q")
os.chdir("lake")
found = db.sql(pattern).fetchall()
counts = {}
for line in pathlib.Path("../a.txt").read_text().splitlines()[:-1]:
    counts[line.split("/")[2].split(".", 1)[1]] = counts.get(line.split("/")[2].split(".", 1)[1], 0) + 1
for line in pathlib.Path("../c.jsonl").read_text().splitlines():
    counts[line.split("/")[2]] = counts.get(line.split("/")[2], 0) + 1
check(found == sorted(counts.items(), key=lambda e: (-e[1], e[0]))[:10], f"the second, after gc: {found[:3]} …")

# The tasks of docs/lake.md, as printed, give the files and the index of a plain ingest.
os.chdir("..")
pathlib.Path("tasks/lists").mkdir(parents=True)
os.chdir("tasks")
for n in range(5):
    pathlib.Path(f"lists/{n}.txt").write_text("".join(f"http://h{i % 7}.example{i % 40}.com/{n}/{i}\n" for i in range(900)))
os.symlink(TRAWL, "trawl")
(script,) = blocks("lake.md", "Ingest by many processes", "sh")
run("bash", "-euo", "pipefail", "-c", script, env={**os.environ, "PATH": f"{os.getcwd()}:{os.environ['PATH']}"})
trawl("lake", "ingest", "--lake", "plain", "--dataset", "wednesday", "--prefix-digits", 1, "-q", *sorted(pathlib.Path("lists").iterdir()))
lists = [trawl("lake", "parts", "--hashes", "--lake", lake) for lake in ("lake", "plain")]
check(lists[0] == lists[1] and lists[0].count(" rows ") > 9, "the tasks of docs/lake.md write the bytes of one process")
check(not pathlib.Path("lake/jobs").exists() or not list(pathlib.Path("lake/jobs").rglob("*.*")), "their job has ended")
os.chdir("../lake")

text = "".join(page.read_text(encoding="utf-8") for page in sorted((DOCS / "formats").glob("*.md")))
kinds = set()
for path in pathlib.Path(".").rglob("*"):
    if path.is_file():
        name = re.sub(r"[0-9a-f]{32}|[0-9a-f]{16}(?=\.dat)", "<>", str(path))
        name = re.sub(r"\d{10}(?=\.json)", "<n>", re.sub(r"index/\d{14}-<>(?:-\d+)+", "index/<segment>", name))
        kinds.add(re.sub(r"(dataset_id=|datasets/)\d+", r"\1<id>", re.sub(r"postings/\d+", "postings/{shard}", name)))
words = {
    "index/manifest.json": "`index/manifest.json`", "index/manifests/<n>.json": "`index/manifests/<n>.json`",
    "index/suffix_lists/<>.dat": "`index/suffix_lists/<hash>.dat`", "datasets/suffix_lists/<>.dat.zst": "`datasets/suffix_lists/<hash>.dat.zst`",
    "datasets/<id>/commits/<n>.json": "`datasets/<id>/commits/<n>.json`", "datasets/deny/<n>.json": "`datasets/deny/<n>.json`",
    "datasets/<id>/rejects/<>.jsonl": "`datasets/<id>/rejects/<writer>.jsonl`",
    "urls/dataset_id=<id>/domain_prefix=all/part-<>-00000.parquet": "domain_prefix=all/part-<writer>-00000.parquet",
}
for kind in sorted(kinds):
    shown = words.get(kind, "`" + kind.removeprefix("index/<segment>/") + "`")
    check(shown in text, f"docs/formats describe {kind}")

# The queries of docs/formats as printed, but for the numbers of the dataset and its commit.
(query,) = blocks("formats/lake-layout.md", "Reading a lake", "sql")
commit = sorted(pathlib.Path("datasets/1/commits").iterdir())[-1]
for statement in query.replace("datasets/7/commits/0000000003.json", str(commit)).split(";")[:-1]:
    answer = db.sql(statement)
counts = answer.fetchall()
check(sum(n for _, n in counts) == 3500, "the query of docs/formats/lake-layout.md finds the rows of a dataset", counts)
os.chdir("..")
for out in ("out", "runs/a", "runs/b"):
    trawl("crawl", "http://127.0.0.1:9/", "--out", out, "-q", status=1)
(queries,) = blocks("formats/captures.md", "Queries", "sql")
answers = [db.sql(statement).fetchall() for statement in queries.split(";")[:-1]]
check(len(answers) == 5 and answers[0] == [(0, 2)] and answers[4] == [(4,)], f"the queries of docs/formats/captures.md: {answers}")
done()
