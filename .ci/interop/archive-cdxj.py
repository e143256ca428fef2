#!/usr/bin/env python3
"""Indexes of cdxj-indexer and ours are the same lines; pywb indexes our WARCs and replays them."""
import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import urllib.request
from io import BytesIO

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from peer import check, done, lines, run, trawl, wait_for
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

RUNS = pathlib.Path(__file__).resolve().parents[2] / "crates/formats/captures/tests/specimen/runs"


def same_index(paths, what):
    run("cdxj-indexer", "-s", "-o", "theirs.cdxj", *paths)
    trawl("cdxj", "index", *paths, "--out", "ours.cdxj")
    theirs, ours = lines("theirs.cdxj"), lines("ours.cdxj")
    for a, b in zip(theirs, ours):
        if a != b:
            check(False, what, f"\n  theirs {a[:300]}\n  ours   {b[:300]}")
    check(len(theirs) == len(ours) > 0, f"{what}: the same {len(ours)} lines", (len(theirs), len(ours)))


specimens = sorted(RUNS.glob("*/*.warc.gz"))
same_index(specimens, "the specimens")

# Odd URLs and odd records, written by warcio.
random.seed(7)
HOSTS = ["example.com", "www.example.com", "WWW2.Example.COM", "www.", "a..b.example.", "192.168.10.1", "3232238081", "0300.0250.12.1", "xn--bcher-kva.example",
         "bücher.example", "[2001:db8::1]", "user:pw@host.example", "h.example:80", "h.example:443", "h.example:8080", "ex%41mple.com", "under_score.example", "10.1"]
PATHS = ["", "/", "/a/", "/A/b/../C/./d//e", "/%7Euser/%2541", "/a b", "/é", "/x;jsessionid=0123456789abcdef0123456789ABCDEF", "/(S(4hqa0555fwsecu455xqckv45))/x.aspx",
         "/(4hqa0555fwsecu455xqckv45)/x.aspx?q", "/..", "/a/..", "/%23%3F", "//double", "/a+b|c^d`e{f}"]
QUERIES = ["", "?", "?b=2&a=1", "?a", "?a=&a", "?B=%41&b=a", "?x=1&sid=0123456789abcdef0123456789ABCDEF&z=2", "?PHPSESSID=0123456789abcdef0123456789ABCDEF",
           "?cfid=1&cftoken=2&q=3", "?ASPSESSIONIDABCDEFGH=ABCDEFGHIJKLMNOPQRSTUVWX&y=1", "?q=a+b%20c&amp;d", "?&&a", "?é=ü", "?a=b=c", "?jsessionid=short&x"]
SCHEMES = ["http://", "https://", "HTTP://", "ftp://", "http:////", "http://http://", "https://http://"]
URLS = {s + h + p + q + f for s in SCHEMES for h in HOSTS for p in PATHS for q in random.sample(QUERIES, 4) for f in ("", "#frag")}
URLS = sorted(random.sample(sorted(URLS), 1500)) + ["dns:example.com", "urn:x:Y", "mailto:A@b.example", "http://example.com:port/", "whois://whois.example/x", "metadata:foo"]
with open("odd.warc.gz", "wb") as out:
    writer = WARCWriter(out, gzip=True)
    for n, url in enumerate(URLS):
        # warcio looks for HTTP only behind http: and https:, spelled so.
        kind = ("response", "response", "revisit", "resource")[n % 4] if url.startswith(("http:", "https:")) else "resource"
        head = StatusAndHeaders("200 OK" if n % 3 else "404 Not Found", [("Content-Type", ("text/html; charset=utf-8", "image/png", "", "a/b c")[n % 5 % 4])], protocol="HTTP/1.1")
        headers = {"WARC-Date": f"2026-0{1 + n % 9}-11T0{n % 10}:00:00.123Z"} if n % 2 else {"WARC-Date": "2020-02-29T23:59:59Z"}
        if kind == "revisit":
            record = writer.create_revisit_record(url, "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "http://example.com/", "2020-02-29T23:59:59Z", http_headers=head)
        else:
            http = head if kind == "response" else None
            record = writer.create_warc_record(url, kind, payload=BytesIO(b"body %d" % n), http_headers=http, warc_content_type="" if http else "text/plain",
                                               warc_headers_dict=headers)
            if n % 7 == 0:
                record.rec_headers.remove_header("WARC-Payload-Digest")
        writer.write_record(record)
same_index(["odd.warc.gz"], "odd URLs")
run("warcio", "recompress", "odd.warc.gz", "again.warc.gz")
with open("again.warc.gz", "rb") as packed, open("plain.warc", "wb") as plain:
    import gzip
    plain.write(gzip.GzipFile(fileobj=packed).read())
same_index(["plain.warc"], "an uncompressed file")

line = lines("ours.cdxj")[700]
url = json.loads(line.split(" ", 2)[2])["url"]
check(line in trawl("cdxj", "lookup", "ours.cdxj", url).splitlines(), "a lookup finds a line by its URL", url)

# pywb: index our WARC, replay a page of it.
os.makedirs("wb", exist_ok=True)
run("wb-manager", "init", "test", cwd="wb")
run("wb-manager", "add", "test", *specimens, cwd="wb")


def get(path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=120) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()
    except OSError:
        return 0, b""


# It cannot be told to take a free port. One that was free may be taken by the time it starts: then it ends, and gets another.
for _ in range(5):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(["wayback", "-b", "127.0.0.1", "-p", str(port)], cwd="wb", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: server.poll() is not None or get("/")[0], 300, "pywb")
    if server.poll() is None:
        break
try:
    cdx = get("/test/cdx?url=http://www.example.org/*&output=json")
    check(cdx[0] == 200 and len(cdx[1].splitlines()) > 8, "pywb has indexed the run", cdx[1][:200])
    page = get("/test/20260624010204id_/http://www.example.org/")
    check(page[0] == 200 and b"<title>home</title>" in page[1], "pywb replays a page", page[1][:200])
    again = get("/test/20260624010213id_/http://www.example.org/")
    check(again[0] == 200 and b"<title>home</title>" in again[1], "pywb resolves a revisit", again[1][:200])
    for coding in ("gzip", "br", "deflate"):
        coded = get(f"/test/2026id_/https://coded.example.net/{coding}")
        check(coded[0] == 200, f"pywb replays a {coding} body")
finally:
    server.terminate()
    server.wait(timeout=120)
shutil.rmtree("wb")
done()
