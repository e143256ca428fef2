#!/usr/bin/env python3
"""The Spark lines of docs/lake.md, run as printed over a lake with an appended, a replaced, a dropped and an unfinished dataset."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from docs import blocks
from peer import check, done, trawl, trawl_json

pathlib.Path("a.txt").write_text("".join(f"http://h{i % 7}.example{i % 40}.com/{i}\n" for i in range(3000)))
pathlib.Path("b.txt").write_text("".join(f"HTTP://Example{i % 20}.org:80/{i}\n" for i in range(1000)))
pathlib.Path("c.jsonl").write_text("".join(f'{{"url":"http://example{i % 9}.com/c{i}","ts":{1_700_000_000 + i},"status":200}}\n' for i in range(500)))
trawl("lake", "ingest", "--dataset", "first", "a.txt", "-q")
trawl("lake", "ingest", "--dataset", "second", "c.jsonl", "-q")
trawl("lake", "ingest", "--dataset", "second", "b.txt", "--replace", "--store-ids", "-q")
trawl("lake", "ingest", "--dataset", "first", "c.jsonl", "-q")
trawl("lake", "ingest", "--dataset", "gone", "b.txt", "-q")
trawl("lake", "drop", "gone", "--yes", "-q")
# What an interrupted first ingest leaves: a directory without commits.
pathlib.Path("lake/urls/dataset_id=9/domain_prefix=all").mkdir(parents=True)

[lines] = blocks("lake.md", "Spark", "python")
shown = {}
exec(lines, shown)
rows = [tuple(row) for row in shown["per_dataset"].collect()]
check(rows == [(1, 3500, 40), (2, 1000, 20)], f"rows and domains of each dataset: {rows}")
names = {d["dataset_id"]: d["rows"] for d in trawl_json("lake", "datasets")}
check(names == {d: n for d, n, _ in rows}, "as trawl counts them")
urls = shown["urls"]
found = {row.url for row in urls.where("dataset_id = 2").selectExpr("coalesce(raw_url, scheme || '://' || host || path_query) AS url").collect()}
check(found == set(pathlib.Path("b.txt").read_text().splitlines()), "the URLs of the replaced dataset, raw as they came")
times = urls.where("status = 200").selectExpr("count(ts)", "min(unix_millis(ts))").collect()[0]
check(tuple(times) == (500, 1_700_000_000_000), f"times and statuses: {tuple(times)}")
shown["spark"].stop()
trawl("lake", "compact", "--full", "-q")
trawl("lake", "gc", "--keep-versions", 1, "--grace", "0s", "--yes", "-q")
shown = {}
exec(lines, shown)
check([tuple(row) for row in shown["per_dataset"].collect()] == rows, "the same after compaction and gc")
check(shown["spark"].read.option("mergeSchema", "true").parquet("lake/urls").count() == 4500, "spark.read.parquet on urls/ itself")
shown["spark"].stop()
done()
