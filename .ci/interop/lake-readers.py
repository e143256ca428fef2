#!/usr/bin/env python3
"""A lake's urls/ as people open it: pandas, Polars, DuckDB and PyArrow, as typed."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import duckdb
import pandas
import polars
import pyarrow.dataset
from docs import blocks
from peer import check, done, trawl, trawl_json

# Of different shapes: plain URLs, spellings that differ from the normal form, captures with times.
pathlib.Path("plain.txt").write_text("".join(f"http://h{i % 7}.example{i % 40}.com/{i}\n" for i in range(3000)))
pathlib.Path("raw.txt").write_text("".join(f"HTTP://Example{i % 20}.org:80/a//{i}#x\n" for i in range(1000)))
pathlib.Path("captures.jsonl").write_text("".join(f'{{"url":"http://example{i % 9}.com/c{i}","ts":{1_700_000_000 + i},"status":200,"extra":{i}}}\n' for i in range(500)))
for name, source in [("plain", "plain.txt"), ("raw", "raw.txt"), ("captures", "captures.jsonl")]:
    trawl("lake", "ingest", "--dataset", name, source, "-q")
trawl("lake", "ingest", "--dataset-per-file", "plain.txt", "raw.txt", "-q")
trawl("lake", "deny", "add", "--domain", "nobody.org", "-q")
expected = {d["dataset_id"]: d["rows"] for d in trawl_json("lake", "datasets")}
check(expected == {1: 3000, 2: 1000, 3: 500}, f"three datasets: {expected}")


def counts(frame):
    return {int(k): int(v) for k, v in frame.items()}


rows = pandas.read_parquet("lake/urls")
check(counts(rows.groupby("dataset_id", observed=True).size().to_dict()) == expected, f"pandas.read_parquet: {list(rows.columns)}")
rows = polars.scan_parquet("lake/urls").collect()
check(counts(dict(rows.group_by("dataset_id").len().iter_rows())) == expected, f"polars.scan_parquet: {rows.schema}")
check(polars.read_parquet("lake/urls").height == 4500, "polars.read_parquet")
rows = duckdb.sql("SELECT dataset_id, count(*) FROM 'lake/urls/*/*/*.parquet' GROUP BY 1").fetchall()
check(counts(dict(rows)) == expected, "DuckDB: FROM 'lake/urls/*/*/*.parquet'")
rows = pyarrow.dataset.dataset("lake/urls", format="parquet", partitioning="hive").to_table()
check(rows.num_rows == 4500 and "raw_url" in rows.column_names, "pyarrow.dataset")
for block in blocks("lake.md", "The whole URL", "sql"):
    for statement in block.split(";"):
        result = duckdb.sql(statement.replace("'urls/", "'lake/urls/")) if statement.strip() else None
urls = {url for (url,) in duckdb.sql("SELECT url FROM urls").fetchall()}
wanted = {line for name in ("plain.txt", "raw.txt") for line in pathlib.Path(name).read_text().splitlines()}
check(wanted <= urls, "the view of docs/lake.md gives the URLs as their sources spelled them")
done()
