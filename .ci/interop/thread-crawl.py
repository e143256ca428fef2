#!/usr/bin/env python3
"""A crawl of the synthetic web: warcio checks the WARCs, DuckDB runs the documented queries on captures.parquet."""
import glob
import gzip
import hashlib
import io
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import duckdb
from peer import check, done, lines, run, testweb, trawl, trawl_json
from warcio.archiveiterator import ArchiveIterator

DEPTH = 3
with testweb("--domains", 60, "--pages", 600, "--seeds-file", "seeds.txt", "--expected-file", "expected.txt",
             "--depth", DEPTH, "--log", "requests.log") as web:
    trawl("crawl", "seeds.txt", "--out", "crawl", "--depth", DEPTH, "--scope", "any", "--connect-to", web["connect_to"], "--delay", "5ms", "--quiet")

expected = sorted(lines("expected.txt"))
warcs = sorted(glob.glob("crawl/*.warc.gz"))
check(warcs and not glob.glob("crawl/*.open"), "every WARC is finished")
run("warcio", "check", "-v", *warcs)
check(True, f"warcio check passes on {len(warcs)} file(s)")

records, ids, fetched = {}, set(), []
for path in warcs:
    with open(path, "rb") as stream:
        for record in ArchiveIterator(stream):
            kind = record.rec_type
            records[kind] = records.get(kind, 0) + 1
            ids.add(record.rec_headers.get_header("WARC-Record-ID"))
            url = record.rec_headers.get_header("WARC-Target-URI")
            if kind == "response" and not url.endswith("/robots.txt"):
                fetched.append(url)
check(len(ids) == sum(records.values()), "every record has an id of its own")
check(records["response"] == records["request"] and records["metadata"] >= records["response"], "each event is response, request, metadata", records)
check(sorted(fetched) == expected, f"the {len(expected)} expected pages are archived exactly once",
      f"missing {sorted(set(expected) - set(fetched))[:3]} extra {sorted(set(fetched) - set(expected))[:3]}")

index = "crawl/captures.parquet"
db = duckdb.connect()
columns = [c[0] for c in db.sql(f"select * from '{index}' limit 0").description]
check(columns[:13] == ["url", "host", "status", "fetched_at", "content_type", "body_length", "digest", "unchanged", "warc_file",
                       "warc_offset", "warc_length", "error", "meta_json"], "the 13 columns come first, in order")
statuses = db.sql(f"SELECT status, count(*) AS n FROM '{index}' GROUP BY status ORDER BY n DESC").fetchall()
check(dict(statuses).get(200, 0) >= len(expected), "status breakdown", statuses)
hosts = db.sql(f"SELECT host, sum(body_length) AS bytes, count(*) AS pages FROM '{index}' WHERE error = '' "
               "GROUP BY host ORDER BY bytes DESC LIMIT 25").fetchall()
check(len(hosts) == 25 and hosts[0][1] > 0, "hosts by bytes")
failed = db.sql(f"SELECT url, error FROM '{index}' WHERE error <> ''").fetchall()
check(all(error for _, error in failed), f"failures with their reasons ({len(failed)})")
db.sql(f"SELECT url, json_extract_string(meta_json, '$.source') AS source FROM '{index}' WHERE meta_json <> ''").fetchall()
check(db.sql("SELECT count(*) FROM 'crawl*/captures.parquet'").fetchall()[0][0] == sum(n for _, n in statuses), "a glob over runs")

rows = db.sql(f"SELECT url, status, digest, warc_file, warc_offset, warc_length FROM '{index}' WHERE warc_file <> ''").fetchall()
check(len(rows) == records["response"] + records.get("revisit", 0), "one row for each response")
for url, status, digest, name, offset, length in rows:
    with open(f"crawl/{name}", "rb") as stream:
        stream.seek(offset)
        member = stream.read(length)
    record = next(iter(ArchiveIterator(io.BytesIO(member))))
    assert gzip.decompress(member).startswith(b"WARC/1.1\r\n"), url
    assert record.rec_type == "response" and record.rec_headers.get_header("WARC-Target-URI") == url, url
    assert int(record.http_headers.get_statuscode()) == status, url
    assert hashlib.sha1(record.raw_stream.read()).hexdigest() == digest, url
check(True, f"each of {len(rows)} rows inflates alone to its record, digest included")

trawl("verify", "crawl", "--quiet")
check(True, "trawl verify finds nothing wrong")
facts = trawl_json("inspect", "crawl")
check(facts, "trawl inspect prints JSON")
page = expected[0]
body = trawl("cat", "crawl", "--url", page, "--body")
check("<html" in body.lower(), "trawl cat gives one page's body")
done()
