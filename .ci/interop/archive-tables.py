#!/usr/bin/env python3
"""captures.parquet under DuckDB, pyarrow, pandas and Polars: every documented query, two runs side by side, each row's bytes."""
import hashlib
import io
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import duckdb
import pandas
import polars
import pyarrow.parquet
from peer import check, done, trawl
from warcio.archiveiterator import ArchiveIterator

RUNS = pathlib.Path(__file__).resolve().parents[2] / "crates/formats/captures/tests/specimen/runs"
shutil.copytree(RUNS, "runs")
shutil.copytree("runs/a", "ami-out")
FIRST = ["url", "host", "status", "fetched_at", "content_type", "body_length", "digest", "unchanged", "warc_file", "warc_offset", "warc_length", "error", "meta_json"]

# The queries printed in the seed, verbatim.
db = duckdb.connect()
breakdown = db.sql("""SELECT status, count(*) AS n
FROM 'ami-out/captures.parquet'
GROUP BY status ORDER BY n DESC;""").fetchall()
check(dict(breakdown)[200] >= 4 and dict(breakdown)[0] == 4, "status breakdown", breakdown)
hosts = db.sql("""SELECT host, sum(body_length) AS bytes, count(*) AS pages
FROM 'ami-out/captures.parquet'
WHERE error = ''
GROUP BY host ORDER BY bytes DESC LIMIT 25;""").fetchall()
check(hosts[0][0] == "www.example.org" and hosts[0][1] > 1000, "the hosts that contributed the most bytes", hosts)
failed = db.sql("SELECT url, error FROM 'ami-out/captures.parquet' WHERE error <> '';").fetchall()
check(len(failed) == 4 and all(error for _, error in failed), "everything that failed, with the reason")
sources = db.sql("""SELECT url, json_extract_string(meta_json, '$.source') AS source
FROM 'ami-out/captures.parquet' WHERE meta_json <> '';""").fetchall()
check(len(sources) == 6 and {s for _, s in sources} == {"sitemap"}, "a seed's passthrough metadata")
total = db.sql("SELECT count(*) FROM 'runs/*/captures.parquet';").fetchall()[0][0]
check(total == 16 + 20, "two runs union cleanly")
check(list(pandas.read_parquet("ami-out/captures.parquet").head().columns[:13]) == FIRST, "pandas reads it, the 13 columns first")

table = pyarrow.parquet.read_table("runs/b/captures.parquet")
table.validate(full=True)
check(table.num_rows == 20 and table.schema.names[:13] == FIRST, "pyarrow reads and validates it")
check(all(not table.schema.field(name).nullable for name in FIRST), "the 13 columns are required")
check(all(table.schema.field(name).nullable for name in table.schema.names[13:]), "the others are optional")
parquet = pyarrow.parquet.ParquetFile("runs/b/captures.parquet")
check(parquet.metadata.metadata[b"captures.version"] == b"1", "the footer names the contract")
check(parquet.metadata.row_group(0).column(0).compression == "ZSTD", "zstd")
frame = polars.read_parquet("runs/*/captures.parquet")
check(frame.height == total and frame["url"].null_count() == 0, "Polars reads both, strictly")
check(frame.filter(polars.col("error") == "")["warc_file"].n_unique() == 2, "Polars filters")
bloom = db.sql("SELECT * FROM parquet_bloom_probe('runs/b/captures.parquet', 'url', 'http://absent.example/')").fetchall()
check(all(row[2] for row in bloom), "the Bloom filter of url excludes a stranger", bloom)
types = {name: str(kind) for name, kind in zip(table.schema.names, table.schema.types)}
check((types["status"], types["fetched_at"], types["unchanged"], types["url"]) == ("int32", "int64", "bool", "string"), "the seed's types", types)
meta = json.loads(db.sql("SELECT meta_json FROM 'runs/a/captures.parquet' WHERE meta_json <> '' ORDER BY started_at LIMIT 1").fetchall()[0][0])
check(meta == {"source": "sitemap", "depth": 0, "tags": ["a", None, True], "note": "<&>é é"}, "meta_json keeps its JSON types", meta)

rows = db.sql("SELECT url, status, digest, unchanged, filename, warc_file, warc_offset, warc_length, started_at FROM read_parquet('runs/*/captures.parquet', "
              "filename = true) WHERE warc_file <> ''").fetchall()
for url, status, digest, unchanged, index, name, offset, length, started in rows:
    with open(pathlib.Path(index).parent / name, "rb") as stream:
        stream.seek(offset)
        member = stream.read(length)
    records = list(ArchiveIterator(io.BytesIO(member)))
    assert len(records) == 1, url
    record = next(iter(ArchiveIterator(io.BytesIO(member))))
    assert record.rec_type == ("revisit" if unchanged else "response"), url
    assert record.rec_headers.get_header("WARC-Target-URI") == url and int(record.http_headers.get_statuscode()) == status, url
    if not unchanged:
        assert hashlib.sha1(record.raw_stream.read()).hexdigest() == digest, url
check(len(rows) == total - 4 - 2, f"each of {len(rows)} pointers inflates to exactly its record")

# Rebuilt from the WARC alone: the same rows, failures and metadata included.
for run in ("a", "b"):
    trawl("captures", "rebuild", f"runs/{run}", "--out", f"rebuilt-{run}.parquet")
    again = pyarrow.parquet.read_table(f"rebuilt-{run}.parquet")
    check(again.equals(pyarrow.parquet.read_table(f"runs/{run}/captures.parquet")), f"the index of run {run}, rebuilt from its WARC, is equal")
trawl("verify", "runs/a", "runs/b")
check(True, "trawl verify finds rows and records in agreement")

trawl("captures", "export", "runs/a/captures.parquet", "cc.parquet")
cc = db.sql("SELECT url_surtkey, url_host_registered_domain, fetch_status, content_digest, warc_filename, warc_record_offset FROM 'cc.parquet' "
            "WHERE fetch_time >= TIMESTAMPTZ '2026-06-24 00:00:00+00' AND content_mime_type = 'text/html'").fetchall()
check(len(cc) > 4 and all(len(row[3]) == 32 for row in cc), "Common Crawl's column names answer Common Crawl's queries")
done()
