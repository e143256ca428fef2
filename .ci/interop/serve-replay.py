#!/usr/bin/env python3
"""Captures over HTTP, from every container: the bytes are those that the synthetic web sends to whoever asks it."""
import gzip
import http.client
import pathlib
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from peer import check, done, trawl
from served import crawling, fetch, ingest, serve
from servers import responses
from warcio.archiveiterator import ArchiveIterator

PAGES = 1100
with crawling("crawl", pages=1600, domains=60) as web:
    captured = {url: found for url, found in responses("crawl").items() if found[0] == 200}
    # The web itself is asked, and not by us: neither our crawler nor our readers have a say in what is right.
    port = int(web["connect_to"].rsplit(":", 1)[1])
    truth = {}
    for url in list(captured)[:PAGES]:
        parts = urllib.parse.urlsplit(url)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", parts.path + ("?" + parts.query if parts.query else ""), headers={"Host": parts.netloc})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status == 200:
            truth[url] = gzip.decompress(body) if answer.headers.get("Content-Encoding") == "gzip" else body
        connection.close()
check(len(truth) >= 1000, f"{len(truth)} pages of the synthetic web")

warcs = sorted(map(str, pathlib.Path("crawl").glob("*.warc.gz")))


def arc(target):
    """ARC files, which Trawl reads and does not write: as the Internet Archive's crawler wrote them."""
    with open(target, "wb") as out:
        def member(text):
            out.write(gzip.compress(text) if target.endswith(".gz") else text)
        version = b"1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n"
        member(b"filedesc://all.arc 0.0.0.0 20261116000000 text/plain %d\n" % len(version) + version + b"\n")
        for path in warcs:
            with open(path, "rb") as stream:
                for record in ArchiveIterator(stream, no_record_parse=True):
                    head = record.rec_headers
                    if record.rec_type == "response" and not head.get_header("WARC-Target-URI").endswith("/robots.txt"):
                        block = record.raw_stream.read()
                        date = "".join(filter(str.isdigit, head.get_header("WARC-Date")))[:14]
                        member(f"{head.get_header('WARC-Target-URI')} 127.0.0.1 {date} text/html {len(block)}\n".encode() + block + b"\n")


containers = {"warc": "crawl"}
for name, target in [("plain", "plain/all.warc"), ("zstd", "zstd/all.warc.zst"), ("arc", "arc/all.arc"), ("arcgz", "arcgz/all.arc.gz"),
                     ("wacz", "wacz/all.wacz"), ("seqdb", "seqdb/all.data"), ("nutch", "nutch/20261116100000.segment")]:
    pathlib.Path(target).parent.mkdir()
    if name.startswith("arc"):
        arc(target)
    else:
        # A segment keeps the last capture of a URL and no requests: findings, told by exit code 1.
        trawl("-q", "convert", *warcs, target, status=1 if name == "nutch" else 0)
    containers[name] = target
for name, source in containers.items():
    ingest(name, source)
with serve() as at:
    connection = http.client.HTTPConnection(at.removeprefix("http://"), timeout=60)
    for name in containers:
        wrong = []
        for url, body in truth.items():
            connection.request("GET", f"/v1/capture/{name}?{urllib.parse.urlencode({'url': url, 'part': 'body'})}")
            answer = connection.getresponse()
            found = answer.read()
            if (answer.status, found) != (200, body):
                wrong.append((url, answer.status, found[:80]))
        check(not wrong, f"{name}: the bytes of {len(truth)} captures", wrong[:3])
    url = next(iter(truth))
    status, headers, found = fetch(f"{at}/v1/capture/warc?{urllib.parse.urlencode({'url': url})}")
    check(status == 200 and found.startswith(b"WARC/1.1"), "a stored record")
    status, headers, _ = fetch(f"{at}/timegate/{url}")
    check(status == 302, "a TimeGate redirects", status)
    status, headers, found = fetch(at + headers["Location"])
    check(found == truth[url] and headers["Memento-Datetime"], "to the memento")
done()
