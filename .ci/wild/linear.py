#!/usr/bin/env python3
"""Every parser on inputs of 1, 10 and 100 times a size: CPU time must grow as the input does.

    linear.py [NAME…]      wants TRAWL, the binary

Ten times the input may take up to BOUND times the time; what starting the program takes is measured and taken off. Shapes are
those that make a parser go back: marks without anything behind them, things that open and never close, rules of nothing but
stars. Sizes are such that the largest takes some seconds at most if all is well.
"""
import gzip
import io
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "interop"))
from peer import TRAWL, check, done

# A quadratic parser has a hundred. Caches and allocators account for some; a machine at work for more.
BOUND = 25
# Below this a time says nothing.
LEAST_SECONDS = 0.05
LIMIT_SECONDS = 300


def record(n, block=b"x", kind="resource", fields=""):
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:x:{n}>\r\nWARC-Date: 2026-06-24T01:02:03Z\r\nWARC-Target-URI: http://h{n % 97}.example/{n}\r\n{fields}Content-Length: {len(block)}\r\n\r\n"
    return head.encode() + block + b"\r\n\r\n"


def lines(line):
    return lambda n: "".join(line(i) for i in range(n // 50)).encode()


def package(n):
    """A WACZ file of many small archives."""
    out, names = io.BytesIO(), [f"archive/{i:08d}.warc" for i in range(n // 400)]
    with zipfile.ZipFile(out, "w") as file:
        for i, name in enumerate(names):
            file.writestr(name, record(i))
        file.writestr("datapackage.json", json.dumps({"resources": [{"path": name} for name in names]}))
    return out.getvalue()


def cat(path):
    return ["cat", path]


def verify(path):
    return ["verify", path]


def index(path):
    return ["cdxj", "index", path, "--out", f"{path}.cdxj"]


def ingest(path):
    return ["lake", "ingest", "--lake", f"{path}.lake", "--dataset", "d", path]


def links(path):
    return ["url", "links", path, "--base", "http://h.example/a/b/"]


def sitemap(path):
    return ["url", "sitemap", path]


def robots(path):
    return ["url", "robots", path, "https://h.example/" + "ab" * 500]


def sized(unit):
    return lambda n: (unit * (n // len(unit) + 1))[:n]


# Name of the file, how it is made for so many bytes, what reads it, the size of 1x.
SHAPES = {
    "records.warc": (lambda n: b"".join(record(i) for i in range(n // 200)), verify, 200_000),
    "records.warc.gz": (lambda n: b"".join(gzip.compress(record(i), 1) for i in range(n // 200)), verify, 200_000),
    "one-member.warc.gz": (lambda n: gzip.compress(b"".join(record(i) for i in range(n // 200)), 1), index, 200_000),
    "marks.warc": (lambda n: record(0) + sized(b"WARC/1.0")(n), verify, 100_000),
    "lower-marks.warc": (lambda n: record(0) + sized(b"warc/1.0")(n), verify, 100_000),
    "versions.warc": (lambda n: record(0) + sized(b"WARC/1.0\r\n")(n), verify, 100_000),
    "marks.warc.gz": (lambda n: gzip.compress(record(0)) + sized(b"\x1f\x8b\x08\0\0\0\0\0\0\3")(n), verify, 50_000),
    "flags.warc.gz": (lambda n: gzip.compress(record(0)) + sized(b"\x1f\x8b\x08")(n), verify, 50_000),
    "verified.wacz": (package, verify, 200_000),
    "indexed.wacz": (package, index, 200_000),
    "mixed.warc": (lambda n: b"".join(gzip.compress(record(i), 1) if i % 2 else record(i) for i in range(n // 200)), verify, 100_000),
    "mixed-marks.warc": (lambda n: record(0) + gzip.compress(record(1)) + sized(b"WARC/1.0\r\n\x1f\x8b\x08\0\x28\xb5\x2f\xfd")(n), verify, 50_000),
    "zeros.warc": (lambda n: record(0) + bytes(n), verify, 100_000),
    "fields.warc": (lambda n: b"WARC/1.0\r\n" + sized(b"A: b\r\n")(n), verify, 5_000),
    "folded.warc": (lambda n: b"WARC/1.0\r\nA: b\r\n" + sized(b" b\r\n")(n), verify, 5_000),
    "lines.arc": (lambda n: b"filedesc://a 0.0.0.0 20080430204825 text/plain 0\n" + sized(b"http://a.example/ 192.0.2.1 20080430204826 text/html 0\n")(n), verify, 100_000),
    "words.arc": (lambda n: b"filedesc://a 0.0.0.0 20080430204825 text/plain 0\n" + sized(b"http ")(n), verify, 5_000),
    "heads.warc": (lambda n: record(1, b"HTTP/1.1 200 OK\r\n" + sized(b"A: b\r\n")(n) + b"\r\n", "response", "Content-Type: application/http\r\n"), index, 10_000),
    "chunks.warc": (lambda n: record(1, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + sized(b"1\r\nx\r\n")(n), "response", "Content-Type: application/http\r\n"), ingest, 100_000),
    "escapes.warc": (lambda n: record(1).replace(b"/1\r\n", b"/%25" + sized(b"25")(n) + b"\r\n", 1), index, 2_000),
    "slashes.warc": (lambda n: record(1).replace(b"/1\r\n", b"/" + sized(b"a/../")(n) + b"\r\n", 1), index, 2_000),
    "urls.txt": (lines(lambda i: f"http://h{i % 97}.example/some/path/{i}?x={i}\n"), ingest, 100_000),
    "one-line.txt": (sized(b"http://h.example/"), ingest, 100_000),
    "several.txt": (sized(b"http://h.example/ "), ingest, 40_000),
    "commas.csv": (sized(b"http://h.example/a,b\nhttp://h.example/\n"), ingest, 100_000),
    "quotes.csv": (lambda n: b"url,x\n" + sized(b'"')(n), ingest, 100_000),
    "rows.csv": (lambda n: b"url,x\n" + lines(lambda i: f"http://h{i % 97}.example/{i},\"a\"\"b\"\n")(n), ingest, 100_000),
    "list.json": (lambda n: b"[" + b",".join(b'{"url":"http://h%d.example/"}' % i for i in range(n // 40)) + b"]", ingest, 100_000),
    "entries.har": (lambda n: b'{"log":{"entries":[' + sized(b'{"request":{}},')(n) + b"{}]}}", ingest, 50_000),
    "bookmarks.html": (lambda n: b"<!DOCTYPE NETSCAPE-Bookmark-file-1>\n" + sized(b"<A HREF=\"x\" t='")(n), ingest, 100_000),
    "deep.json": (sized(b"["), ingest, 50_000),
    "lines.jsonl": (lines(lambda i: json.dumps({"url": f"http://h{i % 97}.example/{i}"}) + "\n"), ingest, 100_000),
    "keys.jsonl": (lambda n: b'{"url":"http://h.example/"' + b"".join(b',"k%d":1' % i for i in range(n // 10)) + b"}\n", ingest, 20_000),
    "index.cdxj": (lines(lambda i: f'example,h)/{i} 20260624010203 {{"url": "http://h.example/{i}"}}\n'), ingest, 100_000),
    "page.html": (lines(lambda i: f"<p><a href='/x/{i}'>text</a>\n"), links, 100_000),
    "opens.html": (sized(b"<svg><template><a "), links, 100_000),
    "angles.html": (sized(b"<"), links, 100_000),
    "comments.html": (sized(b"<!--<!-"), links, 100_000),
    "attributes.html": (lambda n: b"<a " + sized(b"a=b ")(n) + b">", links, 100_000),
    "entities.html": (lambda n: b"<a href='" + sized(b"&amp")(n) + b"'>", links, 30_000),
    "urls.xml": (lambda n: b"<urlset>" + lines(lambda i: f"<url><loc>http://h.example/{i}</loc></url>\n")(n) + b"</urlset>", sitemap, 20_000),
    "deep.xml": (lambda n: b"<urlset>" + sized(b"<url>")(n), sitemap, 100_000),
    "entities.xml": (lambda n: b"<urlset><url><loc>http://h/" + sized(b"&amp;")(n), sitemap, 100_000),
    "rules.txt": (lambda n: b"User-agent: *\n" + lines(lambda i: f"Disallow: /some/path/{i}/*/x$\n")(n), robots, 4_000),
    "stars.txt": (lambda n: b"User-agent: *\nDisallow: /" + sized(b"*a")(n), robots, 150),
    "agents.txt": (sized(b"User-agent: a\n"), robots, 4_000),
}


def seconds(args):
    """CPU time of a run, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([TRAWL, "--quiet", *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_SECONDS)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    check(run.returncode in (0, 1, 2), f"{args[0]} ends", run.returncode) if run.returncode not in (0, 1, 2) else None
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


wanted = sys.argv[1:] or list(SHAPES)
with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    for name in wanted:
        make, read, size = SHAPES[name]
        times = []
        # What a run takes that has nothing to read.
        pathlib.Path(f"0-{name}").write_bytes(make(min(size // 100, 100)))
        idle = seconds(read(f"0-{name}"))
        for factor in (1, 10, 100):
            path = f"{factor}-{name}"
            pathlib.Path(path).write_bytes(make(size * factor))
            times.append(max(seconds(read(path)) - idle, 0.0))
        ratios = [max(b, LEAST_SECONDS) / max(a, LEAST_SECONDS) for a, b in zip(times, times[1:])]
        shown = ", ".join(f"{t:.2f} s" for t in times)
        check(all(ratio <= BOUND for ratio in ratios), f"{name}: {shown}; ratios {ratios[0]:.1f} and {ratios[1]:.1f}", f"over {BOUND}")
done()
