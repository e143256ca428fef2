#!/usr/bin/env python3
"""Captures over HTTP, from every container: the bytes are those that warcio finds in the crawl's WARC files."""
import pathlib
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from peer import check, done, trawl
from served import crawl, fetch, ingest, serve
from servers import responses

crawl("crawl", pages=1600, domains=60)
truth = {url: found for url, found in responses("crawl").items() if found[0] == 200}
check(len(truth) >= 1000, f"{len(truth)} captures to compare")
warcs = sorted(map(str, pathlib.Path("crawl").glob("*.warc.gz")))
containers = {"warc": "crawl"}
for name, target in [("zstd", "zstd/all.warc.zst"), ("wacz", "wacz/all.wacz"), ("seqdb", "seqdb/all.data"), ("nutch", "nutch/20261116100000.segment")]:
    pathlib.Path(target).parent.mkdir()
    # A segment keeps the last capture of a URL and no requests: findings, told by exit code 1.
    trawl("-q", "convert", *warcs, target, status=1 if name == "nutch" else 0)
    containers[name] = target
for name, source in containers.items():
    ingest(name, source)
with serve() as at:
    for name in containers:
        wrong = []
        for url, (_, body) in truth.items():
            query = urllib.parse.urlencode({"url": url, "part": "body"})
            status, headers, found = fetch(f"{at}/v1/capture/{name}?{query}")
            if (status, found) != (200, body):
                wrong.append((url, status, found[:80]))
        check(not wrong, f"{name}: the bytes of {len(truth)} captures", wrong[:3])
    url = next(iter(truth))
    status, headers, found = fetch(f"{at}/v1/capture/warc?{urllib.parse.urlencode({'url': url})}")
    check(status == 200 and found.startswith(b"WARC/1.1"), "a stored record")
    status, headers, _ = fetch(f"{at}/timegate/{url}")
    check(status == 302, "a TimeGate redirects", status)
    status, headers, found = fetch(at + headers["Location"])
    check(found == truth[url][1] and headers["Memento-Datetime"], "to the memento")
done()
