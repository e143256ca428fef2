#!/usr/bin/env python3
"""The same URLs in every format, compression and codec a lake takes, written by others: all give the same rows."""
import csv
import datetime
import gzip
import io
import itertools
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import duckdb
import pyarrow
import pyarrow.parquet
from peer import TRAWL, check, done, run, trawl, trawl_json
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

COUNT = 400
URLS = [f"http://www.example{i % 13}.com/a,b/{i}?q=%41&p=é{i % 3}" for i in range(COUNT)]
TIMES = [1_700_000_000 + i for i in range(COUNT)]


def stamp(i, shape="%Y%m%d%H%M%S"):
    return datetime.datetime.fromtimestamp(TIMES[i], datetime.timezone.utc).strftime(shape)


STAMPS = [stamp(i) for i in range(COUNT)]


def table(separator):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator="\n")
    writer.writerow(["id", "url", "ts", "status"])
    writer.writerows([i, URLS[i], TIMES[i], 200] for i in range(COUNT))
    return out.getvalue()


TEXTS = {
    "txt": "".join(f"{URLS[i]}\t{TIMES[i]}\n" for i in range(COUNT)),
    "jsonl": "".join(json.dumps({"url": URLS[i], "ts": TIMES[i], "status": 200}) + "\n" for i in range(COUNT)),
    "csv": table(","),
    "tsv": table("\t"),
    "cdxj": "".join(f"com,key)/{i} {STAMPS[i]} " + json.dumps({"url": URLS[i], "status": "200"}) + "\n" for i in range(COUNT)),
}
made = []
for (kind, text), packed in itertools.product(TEXTS.items(), ["", ".gz", ".zst"]):
    path = f"in.{kind}{packed}"
    with pyarrow.output_stream(path, compression={"": None, ".gz": "gzip", ".zst": "zstd"}[packed]) as f:
        f.write(text.encode())
    made.append((path, path, kind != "txt"))
    if kind in ("txt", "jsonl", "cdxj"):
        bare = f"{kind}{packed.replace('.', '-')}"
        pathlib.Path(bare).write_bytes(pathlib.Path(path).read_bytes())
        made.append((bare, f"{kind}{packed} without an extension", kind != "txt"))

columns = pyarrow.table({
    "url_surtkey": [f"com,key)/{i}" for i in range(COUNT)],
    "url": URLS,
    "fetch_time": pyarrow.array([t * 1_000_000 for t in TIMES], pyarrow.timestamp("us")),
    "fetch_status": pyarrow.array([200] * COUNT, pyarrow.int16()),
    "content_mime_type": ["text/html"] * COUNT,
    "warc_filename": ["crawl-data/x.warc.gz"] * COUNT,
    "warc_record_offset": pyarrow.array(range(COUNT), pyarrow.int32()),
    "warc_record_length": pyarrow.array([9] * COUNT, pyarrow.int32()),
})
for codec in ["none", "snappy", "gzip", "brotli", "lz4", "zstd"]:
    for version in ["1.0", "2.0"]:
        path = f"cc-{codec}-{version}.parquet"
        pyarrow.parquet.write_table(columns, path, compression=codec, row_group_size=150, data_page_version=version)
        made.append((path, f"Common Crawl's columns, Parquet {codec}, pages {version}", True))

for packed in [False, True]:
    path = f"a.warc{'.gz' if packed else ''}"
    with open(path, "wb") as f:
        writer = WARCWriter(f, gzip=packed)
        for i in range(COUNT):
            head = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
            url = URLS[i].replace("é", "%C3%A9")
            writer.write_record(writer.create_warc_record(url, "response", payload=io.BytesIO(b"x"), http_headers=head, warc_headers_dict={"WARC-Date": stamp(i, "%Y-%m-%dT%H:%M:%SZ")}))
    made.append((path, f"warcio's {path}", True))

blocks = [gzip.compress("".join(TEXTS["cdxj"].splitlines(True)[i:i + 50]).encode()) for i in range(0, COUNT, 50)]
pathlib.Path("cluster").mkdir()
index, at = [], 0
for n, block in enumerate(blocks):
    part = n // 4
    at = 0 if n % 4 == 0 else at
    index.append(f"com,key)/{n * 50} {STAMPS[n * 50]}\tcdx-0000{part}.gz\t{at}\t{len(block)}\t{n + 1}\n")
    at += len(block)
for part in range(2):
    pathlib.Path(f"cluster/cdx-0000{part}.gz").write_bytes(b"".join(blocks[part * 4:part * 4 + 4]))
pathlib.Path("cluster/cluster.idx").write_text("".join(index))
made += [("cluster/cluster.idx", "a ZipNum cluster by its index", True), ("cluster", "a ZipNum cluster by its directory", True)]

expected = sorted((f"http://www.example{i % 13}.com/a,b/{i}?p=%C3%A9{i % 3}&q=A", TIMES[i]) for i in range(COUNT))
db = duckdb.connect()
for n, (path, what, status) in enumerate(made):
    [report] = trawl_json("lake", "ingest", "--dataset", f"d{n}", path, "-q")
    assert (report["rows"], report["rejected"]) == (COUNT, 0), f"{what}: {report}"
    rows = db.sql(f"""select scheme || '://' || host || path_query, epoch_ms(ts) // 1000, {'status' if status else '200'}
        from read_parquet('lake/urls/dataset_id={report["dataset_id"]}/*/*.parquet')""").fetchall()
    found = sorted((url, ts) for url, ts, _ in rows)
    assert found == expected, f"{what}: {found[:2]}, expected {expected[:2]}"
    assert all(s == 200 for _, _, s in rows), what
check(True, f"{len(made)} sources of {COUNT} URLs give the same rows: " + ", ".join(path for path, _, _ in made))

for path, kind in [("in.csv", "csv"), ("in.tsv.gz", "tsv"), ("cc-snappy-1.0.parquet", None), ("a.warc.gz", None), ("in.cdxj.zst", None)]:
    with open(path, "rb") as f:
        out = run(TRAWL, "--json", "lake", "ingest", "--dataset", f"pipe {path}", "-", "-q", *(["--format", kind] if kind else []), stdin=f)
    assert json.loads(out)["rows"] == COUNT, path
check(True, "the same through standard input")
trawl("lake", "ingest", "--dataset", "x", "in.csv", "--format", "parquet", "-q", status=2)
check(True, "a wrong --format fails")
done()
